// SPDX-License-Identifier: Apache-2.0
// The scale rules, each from its mathematical definition, by exact comparison.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {

enum class scale_rule : std::uint8_t { floor, ceil, even, rceil };

/// Rules by the names recipes use.
inline constexpr std::array<std::pair<std::string_view, scale_rule>, 4> scale_rule_names{{
    {"floor", scale_rule::floor},
    {"ceil", scale_rule::ceil},
    {"even", scale_rule::even},
    {"rceil", scale_rule::rceil},
}};

/// What integers subtract as emax: 0, log2 of the largest value (a real number), or 1.
enum class integer_emax : std::uint8_t { zero, log2max, one };

/// The E8M0 code of the scale of a block with maximum `amax` (a float32; sign ignored):
///   floor  2^(floor(log2 amax) - emax)
///   ceil   2^(ceil(log2 amax) - emax)
///   even   2^(floor(log2 a) - emax), a = amax to 1 + mantissa_bits significant bits, ties to even
///   rceil  2^ceil(log2(amax / max))
/// where with log2max `- emax` stands inside the floor or ceiling as log2(amax / max). The exponent
/// is clamped to [-127, 127]; zero gives code 0; Inf, NaN and an `a` of 2^128 give 255.
int scale_code(scale_rule rule, const value_list& list, integer_emax choice, float amax);

}  // namespace mx::oracle
