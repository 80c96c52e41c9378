// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/scale_rules.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/oracle/number.hpp"

namespace mx::oracle {

int scale_code(scale_rule rule, const value_list& list, integer_emax choice, float amax) {
    if (std::isnan(amax) || std::isinf(amax)) return 255;
    if (amax == 0.0f) return 0;

    const format::element_format& element = *list.element;
    const integer one = ticks_of_power(0);
    const integer largest = list.greatest * ticks_of_power(list.quantum_exponent);
    const bool integers = element.kind == format::number_kind::fixed;
    const bool real_emax = integers && choice == integer_emax::log2max;
    // "emax" of the specification: the exponent of the largest value; integers have a choice.
    const int integers_emax = choice == integer_emax::one ? 1 : 0;
    const int emax = integers ? integers_emax : floor_log2(largest, one);

    integer a = ticks_of(std::fabs(amax));
    if (rule == scale_rule::even) {
        a = nearest_even(a, 1 + element.mantissa_bits, tick_exponent);
        if (a >= ticks_of_power(128)) return 255;
    }

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
    }
    return std::clamp(exponent, -127, 127) + 127;
}

}  // namespace mx::oracle
