// SPDX-License-Identifier: Apache-2.0
// The scale rules, each from its mathematical definition, by exact comparison.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {

enum class scale_rule : std::uint8_t {
    floor,
    ceil,
    even,
    rceil,
    nearest,
    enhanced,
    ceil_div_max,
    floor_bump,
    stochastic,
    two_level,
    single_level,
    amax,
    amax_pow2,
    search,
    search_two_level,
    search_single_level,
};

/// Rules by the names that recipes use; of two rules with the same name, the second is for UE4M3
/// scales.
inline constexpr std::array<std::pair<std::string_view, scale_rule>, 16> scale_rule_names{{
    {"floor", scale_rule::floor},
    {"ceil", scale_rule::ceil},
    {"even", scale_rule::even},
    {"rceil", scale_rule::rceil},
    {"nearest", scale_rule::nearest},
    {"enhanced", scale_rule::enhanced},
    {"ceil-div-max", scale_rule::ceil_div_max},
    {"floor-bump", scale_rule::floor_bump},
    {"stochastic", scale_rule::stochastic},
    {"two-level", scale_rule::two_level},
    {"single-level", scale_rule::single_level},
    {"amax", scale_rule::amax},
    {"amax-pow2", scale_rule::amax_pow2},
    {"search", scale_rule::search},
    {"search", scale_rule::search_two_level},
    {"search-single-level", scale_rule::search_single_level},
}};

/// The value that integers subtract as emax: 0, log2 of the largest value (a real number), or 1.
enum class integer_emax : std::uint8_t { zero, log2max, one };

/// The E8M0 code of the scale of a block with maximum `amax` (a float32; sign ignored):
///   floor         2^(floor(log2 amax) - emax)
///   ceil          2^(ceil(log2 amax) - emax)
///   even          2^(floor(log2 a) - emax), a = amax to 1 + mantissa_bits significant bits, ties
///                 to even
///   rceil         2^ceil(log2(amax / max))
///   nearest       2^(floor(log2 amax + 1/2) - emax)
///   enhanced      2^ceil(log2(amax / ((2 - 2^-mantissa_bits) 2^emax))), emax that of the largest
///   ceil-div-max  value whatever `choice` says
///   floor-bump    floor, and twice that where amax > 1.75 * 2^floor(log2 amax)
///   stochastic    2^(floor(log2 a) - emax), a = amax + r ulps of amax, r the top 23 -
///                 mantissa_bits bits of `draw`
/// With log2max, floor, ceil and even put the subtraction inside the floor or ceiling, as
/// log2(amax / max); in the other rules log2max counts as zero. The exponent is clamped to
/// [-127, 127]. Zero gives code 0; Inf, NaN and an `a` of 2^128 give 255. Rules whose scales are
/// not E8M0 codes are in float_scales.cpp, searched ones in searched_code; here they give 255.
int scale_code(scale_rule rule, const value_list& list, integer_emax choice, float amax,
               std::uint32_t draw = 0);

}  // namespace mx::oracle
