// SPDX-License-Identifier: Apache-2.0
// Instabilities in loss curves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mx::lab {

/// A loss is unstable if it is NaN or infinite, or exceeds `factor` times the median of the
/// preceding `window` losses (all preceding ones if there are fewer; with fewer than `least`, the
/// loss is not judged).
struct instability_rule {
    double factor = 10;
    std::size_t window = 100;
    std::size_t least = 20;
};

/// The first unstable step, counted from 1, or nullopt.
std::optional<std::uint64_t> first_instability(std::span<const float> losses,
                                               const instability_rule& rule = {});

}  // namespace mx::lab
