// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/scale_rules.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/oracle/decode.hpp"

namespace mx::oracle {
namespace {

rational largest_value(const format::element_format& element) {
    rational largest = 0;
    for (unsigned code = 0; code < 1u << code_bits(element); ++code) {
        const decoded d = decode(element, code);
        if (d.what == number_class::finite && !d.negative) largest = std::max(largest, d.magnitude);
    }
    return largest;
}

}  // namespace

int scale_code(scale_rule rule, const format::element_format& element, integer_emax choice,
               float amax) {
    if (std::isnan(amax) || std::isinf(amax)) return 255;
    if (amax == 0.0f) return 0;

    const rational largest = largest_value(element);
    const bool integers = element.kind == format::number_kind::fixed;
    const bool real_emax = integers && choice == integer_emax::log2max;
    // "emax" of the specification: the exponent of the largest value; integers have a choice.
    const int emax = integers ? (choice == integer_emax::one ? 1 : 0) : floor_log2(largest);

    rational a = mx::oracle::exact(std::fabs(amax));
    if (rule == scale_rule::even) {
        a = value_of_ticks(
            nearest_even(ticks_of(std::fabs(amax)), 1 + element.mantissa_bits, tick_exponent));
        if (a >= power_of_two(128)) return 255;
    }

    int exponent = 0;
    switch (rule) {
        case scale_rule::floor:
        case scale_rule::even:
            exponent = real_emax ? floor_log2(a / largest) : floor_log2(a) - emax;
            break;
        case scale_rule::ceil:
            exponent = real_emax ? ceil_log2(a / largest) : ceil_log2(a) - emax;
            break;
        case scale_rule::rceil:
            exponent = ceil_log2(a / largest);
            break;
    }
    return std::clamp(exponent, -127, 127) + 127;
}

}  // namespace mx::oracle
