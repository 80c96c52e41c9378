// SPDX-License-Identifier: Apache-2.0
// E8M0 rules as one addition: each gives the exponent of amax minus a constant, plus one if the
// mantissa reaches a threshold.
#pragma once

#include <cstdint>

#include "libmx/scale/scale_rules.hpp"

namespace mx::scale {

inline constexpr std::uint32_t one_binade = 1u << 23;

/// Code = ((amax bits + one_binade - from) >> 23) - base, held between 0 and 254, for a maximum
/// that is a normal number.
struct rule_step {
    int base;
    std::uint32_t from;  ///< one_binade: never
};

/// The rules that step_of states.
MX_HD inline bool is_step(rule_id id) {
    switch (id) {
        case rule_id::floor:
        case rule_id::ceil:
        case rule_id::even:
        case rule_id::rceil:
        case rule_id::nearest:
        case rule_id::enhanced:
        case rule_id::ceil_div_max:
        case rule_id::floor_bump:
            return true;
        default:
            return false;
    }
}

namespace detail {

// Where rounding to the element's precision carries into the next binade. The candidate below is
// all ones, hence odd, and the tie goes up.
MX_HD inline std::uint32_t carries_from(const rule_input& in) {
    return one_binade - (1u << (22 - in.mantissa_bits));
}

// Where it reaches the mantissa `m`, which has the element's precision.
MX_HD inline std::uint32_t rounds_to(const rule_input& in, std::uint32_t m) {
    const int dropped = 23 - in.mantissa_bits;
    const std::uint32_t half = 1u << (dropped - 1);
    const bool odd = (((m | one_binade) >> dropped) & 1u) != 0;
    return m - half + (odd ? 1u : 0u);
}

}  // namespace detail

/// The step of a rule that is_step approves; amax_bits and draw of `in` do not matter.
MX_HD inline rule_step step_of(rule_id id, const rule_input& in) {
    switch (id) {
        case rule_id::floor:
            if (in.real_emax) return {in.max_exponent + 1, in.max_mantissa};
            return {in.emax, one_binade};
        case rule_id::even:
            if (!in.real_emax) return {in.emax, detail::carries_from(in)};
            if (in.max_mantissa == 0) return {in.max_exponent, detail::carries_from(in)};
            return {in.max_exponent + 1, detail::rounds_to(in, in.max_mantissa)};
        case rule_id::ceil:
            if (!in.real_emax) return {in.emax, 1};
            [[fallthrough]];
        case rule_id::rceil:
            return {in.max_exponent, in.max_mantissa + 1};
        case rule_id::nearest:  // from sqrt(2) on
            return {in.emax, 11863284u - one_binade};
        case rule_id::enhanced:
        case rule_id::ceil_div_max:
            return {in.max_exponent, (one_binade - (one_binade >> in.mantissa_bits)) + 1};
        case rule_id::floor_bump:
            return {in.emax, 0x00600001u};
        default:
            return {0, one_binade};
    }
}

}  // namespace mx::scale
