// SPDX-License-Identifier: Apache-2.0
// The input of a scale rule, and the clamp that ends every rule.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"

namespace mx::scale {

/// Which power of two counts as the top of an integer format, on the k/2^(n-2) grid (design:
/// `int_emax`). Yang et al. do not say which they use, and it decides which rule wins.
enum class int_emax : std::uint8_t {
    zero,     ///< 0, the OCP reading: the integer bit has weight 1
    log2max,  ///< log2 of the largest value, a real number
    one,      ///< 1, the power of two above the largest value
};

/// A block maximum and the properties of the element format that rules use.
struct rule_input {
    std::uint32_t
        amax_bits;      ///< float32 bits of the block maximum, sign clear; Inf and NaN allowed
    int emax;           ///< exponent subtracted; with real_emax the exponent of the maximum
    int mantissa_bits;  ///< of the element format
    std::uint32_t max_mantissa;  ///< float32 mantissa field of the largest element
    int max_exponent;            ///< exponent of the largest element
    bool real_emax;              ///< subtract log2(max) instead of emax (int_emax=log2max)
    std::uint32_t draw;          ///< 32 random bits of the block, for rules that use them
    friend bool operator==(const rule_input&, const rule_input&) = default;
};

/// The part of rule_input that a format decides.
constexpr rule_input rule_facts(const format::element_format& f, int_emax choice) {
    const bool integer = !f.floating();
    const int emax = integer && choice == int_emax::one ? 1 : f.emax();
    return {0,
            emax,
            f.mantissa_bits,
            f.max_f32_mantissa(),
            f.emax(),
            integer && choice == int_emax::log2max,
            0};
}

/// amax as 2^exponent * (1 + mantissa/2^23), subnormals normalized.
struct binade {
    int exponent;
    std::uint32_t mantissa;
};

MX_HD inline binade binade_of(std::uint32_t amax_bits) {
    const base::decomposed d = base::decompose(amax_bits);
    return {d.exponent + 23, d.significand & base::f32_mantissa_mask};
}

/// E8M0 code of 2^exponent, clamped to the representable range [2^-127, 2^127].
MX_HD inline int clamp_to_e8m0(int exponent) {
    const int code = exponent + format::e8m0_bias;
    return code < 0 ? 0 : code > format::e8m0_max ? format::e8m0_max : code;
}

/// floor(log2(2^exponent * (1 + mantissa/2^23) / max)): one lower than the difference of the
/// exponents unless the significand reaches that of the maximum.
MX_HD inline int floor_log2_over_max(const binade& b, const rule_input& in) {
    return b.exponent - in.max_exponent - (b.mantissa < in.max_mantissa ? 1 : 0);
}

}  // namespace mx::scale
