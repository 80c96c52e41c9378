// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/nearest.hpp"

#include <algorithm>

namespace mx::base {
namespace {

// Edit distance with swaps of neighbours (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replace = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + replace});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
    constexpr std::size_t longest = 64;  // nothing valid is longer; keeps hostile input cheap
    if (name.size() > longest) return {};
    std::string_view best;
    std::size_t fewest = std::max<std::size_t>(1, name.size() / 2);
    bool found = false;
    for (const std::string_view candidate : candidates) {
        const std::size_t edits = distance(name, candidate);
        if (edits < fewest || (!found && edits == fewest)) {
            best = candidate;
            fewest = edits;
            found = true;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates) {
    const std::string_view meant = nearest(name, candidates);
    return meant.empty() ? std::string() : "; did you mean '" + std::string(meant) + "'?";
}

}  // namespace mx::base
