// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/value_list.hpp"

#include <algorithm>

namespace mx::oracle {
namespace {

std::int64_t in_quanta(const rational& value, int quantum_exponent) {
    return static_cast<std::int64_t>(
        boost::multiprecision::numerator(rational(value / power_of_two(quantum_exponent))));
}

// The distance from `magnitude` (in quanta, at least the largest value) to the next value away from
// zero: constant for fixed point, 2^-mantissa_bits of the binade otherwise.
std::int64_t spacing_above(const format::element_format& f, std::int64_t magnitude) {
    if (f.kind == format::number_kind::fixed) return 1;
    std::int64_t binade = 1;
    while (binade * 2 <= magnitude) binade *= 2;
    return binade >> f.mantissa_bits;
}

}  // namespace

int code_bits(const format::element_format& f) {
    if (f.kind == format::number_kind::fixed) return f.mantissa_bits + 2;
    return (f.has_sign ? 1 : 0) + f.exponent_bits + f.mantissa_bits;
}

decoded decode(const format::element_format& f, unsigned code) {
    const unsigned codes = 1u << code_bits(f);
    if (f.kind == format::number_kind::fixed) {
        // OCP MX 1.0 section 5.3.4: two's complement, implied scale 2^-(bits-2).
        const int k = static_cast<int>(code) - (code >= codes / 2 ? static_cast<int>(codes) : 0);
        return {number_class::finite, k < 0, std::abs(k) * power_of_two(-f.mantissa_bits)};
    }
    const bool negative = f.has_sign && code >= codes / 2;
    const unsigned magnitude = negative ? code - codes / 2 : code;
    const unsigned fractions = 1u << f.mantissa_bits;
    const unsigned fields = 1u << f.exponent_bits;
    const unsigned field = magnitude / fractions;
    const unsigned fraction = magnitude % fractions;

    if (field == fields - 1) {
        if (f.special == format::specials::ieee) {
            return {fraction == 0 ? number_class::infinite : number_class::nan, negative, 0};
        }
        if (f.special == format::specials::fn && fraction == fractions - 1) {
            return {number_class::nan, negative, 0};
        }
    }
    const rational part(fraction, fractions);
    if (field == 0) return {number_class::finite, negative, part * power_of_two(1 - f.bias)};
    return {number_class::finite, negative,
            (1 + part) * power_of_two(static_cast<int>(field) - f.bias)};
}

decoded decode_scale(const format::scale_format& f, unsigned code) {
    if (f.is_number()) return decode(f.number, code);
    if (code == 255) return {number_class::nan, false, 0};
    return {number_class::finite, false, power_of_two(static_cast<int>(code) - 127)};
}

value_list list_values(const format::element_format& f, bool full_range) {
    const bool fixed = f.kind == format::number_kind::fixed;
    value_list list{};
    list.infinity_code = list.nan_code = -1;
    list.element = &f;
    list.quantum_exponent = (fixed ? 0 : 1 - f.bias) - f.mantissa_bits;

    const unsigned codes = 1u << code_bits(f);
    for (unsigned code = 0; code < codes; ++code) {
        const decoded d = decode(f, code);
        if (d.what == number_class::infinite && !d.negative) {
            list.infinity_code = static_cast<int>(code);
        }
        if (d.what == number_class::nan && !d.negative) list.nan_code = static_cast<int>(code);
        if (d.what != number_class::finite) continue;
        if (d.magnitude == 0 && d.negative) continue;
        if (fixed && !full_range && code == codes / 2) continue;
        list.values.push_back(
            {in_quanta(d.value(), list.quantum_exponent), code % 2 == 0, static_cast<int>(code)});
    }
    std::ranges::sort(list.values, {}, &listed_value::quanta);
    list.least = list.values.front().quanta;
    list.greatest = list.values.back().quanta;
    // In formats with fraction bits, the first normal value is 2^(1-bias), which is 2^mantissa_bits
    // quanta.
    const bool subnormals = !fixed && f.mantissa_bits > 0;
    list.smallest_normal = subnormals ? std::int64_t{1} << f.mantissa_bits : 0;

    // The parity of neighbouring codes alternates, also in the continuation.
    const auto continue_from = [&](listed_value last, int sign) {
        const std::int64_t end = 4 * list.greatest;
        std::vector<listed_value> more;
        while (std::abs(last.quanta) < end) {
            last = {last.quanta + sign * spacing_above(f, std::abs(last.quanta)), !last.even, -1};
            more.push_back(last);
        }
        return more;
    };
    const std::vector<listed_value> above = continue_from(list.values.back(), 1);
    if (f.has_sign) {
        const std::vector<listed_value> below = continue_from(list.values.front(), -1);
        list.values.insert(list.values.begin(), below.rbegin(), below.rend());
    }
    list.values.insert(list.values.end(), above.begin(), above.end());
    return list;
}

}  // namespace mx::oracle
