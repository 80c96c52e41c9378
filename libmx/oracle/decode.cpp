// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/decode.hpp"

namespace mx::oracle {

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

}  // namespace mx::oracle
