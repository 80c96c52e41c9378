// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/curves.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mx::lab {

std::optional<std::uint64_t> first_instability(std::span<const float> losses,
                                               const instability_rule& rule) {
    std::vector<float> before;
    for (std::size_t i = 0; i < losses.size(); ++i) {
        if (!std::isfinite(losses[i])) return i + 1;
        const std::size_t count = std::min(i, rule.window);
        if (count < std::max<std::size_t>(rule.least, 1)) continue;
        const auto end = losses.begin() + static_cast<std::ptrdiff_t>(i);
        before.assign(end - static_cast<std::ptrdiff_t>(count), end);
        const auto middle = before.begin() + static_cast<std::ptrdiff_t>(count / 2);
        std::nth_element(before.begin(), middle, before.end());
        if (static_cast<double>(losses[i]) > rule.factor * static_cast<double>(*middle)) {
            return i + 1;
        }
    }
    return std::nullopt;
}

}  // namespace mx::lab
