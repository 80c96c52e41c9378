// SPDX-License-Identifier: Apache-2.0
// THE LIST of element roundings.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/named.hpp"

namespace mx::format {

enum class rounding : std::uint8_t { rtne, away, zero, up, down, stochastic, ties_to_zero };

/// What `rtne` does at 1.5 * 2^k in a format without mantissa bits (E3M0), where "the even
/// significand" has no bit of its own (numerics: microxcaling and FBGEMM go up).
enum class tie_rule : std::uint8_t {
    up,    ///< as if the significand 1 were odd: ties go to the larger magnitude, 1/8 to zero
    even,  ///< to the even code
};

struct rounding_row {
    rounding id;
    std::string_view name;
    std::string_view summary;
};

inline constexpr std::array roundings{
    rounding_row{rounding::rtne, "rtne", "to nearest, ties to the even code"},
    rounding_row{rounding::away, "away", "to nearest, ties away from zero"},
    rounding_row{rounding::zero, "zero", "toward zero (truncate)"},
    rounding_row{rounding::up, "up", "toward plus infinity"},
    rounding_row{rounding::down, "down", "toward minus infinity"},
    rounding_row{rounding::stochastic, "stochastic",
                 "up in magnitude iff floor(delta*2^k) + r >= 2^k, r uniform in [0,2^k)"},
    rounding_row{rounding::ties_to_zero, "nearest-ties-to-zero",
                 "to nearest, ties toward zero (ggml, modelopt)"},
};

constexpr const rounding_row& row_of(rounding id) {
    return roundings[static_cast<std::size_t>(id)];
}

constexpr const rounding_row* find_rounding(std::string_view name) {
    return base::find_named(roundings, name);
}

}  // namespace mx::format
