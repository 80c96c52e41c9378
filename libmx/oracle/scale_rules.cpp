// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/scale_rules.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/oracle/number.hpp"

namespace mx::oracle {
namespace {

// The spacing of float32 values in the binade of `a`, in ticks.
integer ulp_of(const integer& a) {
    const int exponent = floor_log2(a, ticks_of_power(0));
    return ticks_of_power(std::max(exponent, -126) - 23);
}

// (2 - 2^-mantissa_bits) 2^emax in ticks: a significand of all ones at the top exponent.
integer all_ones(int mantissa_bits, int emax) {
    return ticks_of_power(emax + 1) - ticks_of_power(emax - mantissa_bits);
}

}  // namespace

int scale_code(scale_rule rule, const value_list& list, integer_emax choice, float amax,
               std::uint32_t draw) {
    if (std::isnan(amax) || std::isinf(amax)) return 255;
    if (amax == 0.0f) return 0;

    const format::element_format& element = *list.element;
    const integer one = ticks_of_power(0);
    const integer largest = list.greatest * ticks_of_power(list.quantum_exponent);
    const bool integers = element.kind == format::number_kind::fixed;
    const bool real_emax = integers && choice == integer_emax::log2max;
    // "emax" of the specification: the exponent of the largest value; for integers it depends on
    // `choice`.
    const int integers_emax = choice == integer_emax::one ? 1 : 0;
    const int emax = integers ? integers_emax : floor_log2(largest, one);

    integer a = ticks_of(std::fabs(amax));
    if (rule == scale_rule::even) {
        a = nearest_even(a, 1 + element.mantissa_bits, tick_exponent);
    } else if (rule == scale_rule::stochastic) {
        a += ulp_of(a) * (draw >> (32 - (23 - element.mantissa_bits)));
    }
    if (a >= ticks_of_power(128)) return 255;

    int exponent = 0;
    switch (rule) {
        case scale_rule::floor:
        case scale_rule::even:
            exponent = real_emax ? floor_log2(a, largest) : floor_log2(a, one) - emax;
            break;
        case scale_rule::ceil:
            exponent = real_emax ? ceil_log2(a, largest) : ceil_log2(a, one) - emax;
            break;
        case scale_rule::rceil:
            exponent = ceil_log2(a, largest);
            break;
        case scale_rule::nearest:
            exponent = nearest_log2(a, one) - emax;
            break;
        case scale_rule::enhanced:
        case scale_rule::ceil_div_max:
            exponent = ceil_log2(a, all_ones(element.mantissa_bits, floor_log2(largest, one)));
            break;
        case scale_rule::floor_bump: {
            const int below = floor_log2(a, one);
            const bool bump = 4 * a > 7 * ticks_of_power(below);
            exponent = below + (bump ? 1 : 0) - emax;
            break;
        }
        case scale_rule::stochastic:
            exponent = floor_log2(a, one) - emax;
            break;
        case scale_rule::two_level:
        case scale_rule::single_level:
        case scale_rule::amax:
        case scale_rule::amax_pow2:
        case scale_rule::search:
        case scale_rule::search_two_level:
        case scale_rule::search_single_level:
            return 255;
    }
    return std::clamp(exponent, -127, 127) + 127;
}

}  // namespace mx::oracle
