// SPDX-License-Identifier: Apache-2.0
// What a curve of losses says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mx::lab {

/// When a curve counts as unstable: a loss above `factor` times the median of the `window` losses
/// before it (as many as there are, but at least `least`), or one that is no number.
struct instability_rule {
    double factor = 10;
    std::size_t window = 100;
    std::size_t least = 20;
};

/// The first such step, from 1; none where there is none.
std::optional<std::uint64_t> first_instability(std::span<const float> losses,
                                               const instability_rule& rule = {});

}  // namespace mx::lab
