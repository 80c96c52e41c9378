// SPDX-License-Identifier: Apache-2.0
// A rule of power-of-two scales under one element format, in integers: all that the reference,
// vector kernels and GPUs need. scale_rules.hpp has the rules.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/format/scale_formats.hpp"

namespace mx::scale {

/// amax as 2^exponent * (1 + mantissa/2^23), subnormals normalized.
struct binade {
    int exponent;
    std::uint32_t mantissa;
};

MX_HD inline binade binade_of(std::uint32_t amax_bits) {
    const base::decomposed d = base::decompose(amax_bits);
    return {d.exponent + 23, d.significand & base::f32_mantissa_mask};
}

inline constexpr std::uint32_t one_binade = 1u << 23;

/// The exponent of the scale is that of amax less `emax`, plus one if the mantissa of amax is at
/// least `from`. For a maximum that is a normal number, the code is ((amax bits + one_binade -
/// from)
/// >> 23) - emax, held between 0 and 254.
struct rule_step {
    int emax = 0;
    std::uint32_t from = one_binade;              ///< one_binade: never
    std::uint32_t nan_from = base::f32_infinity;  ///< float32 bits of amax that give a NaN scale
    int drawn_bits = 0;  ///< random bits that are added to the mantissa of amax first
    friend bool operator==(const rule_step&, const rule_step&) = default;
};

/// The exponent for a positive finite maximum, without limits.
MX_HD inline int scale_exponent(const rule_step& step, std::uint32_t amax_bits) {
    const binade b = binade_of(amax_bits);
    return b.exponent + (b.mantissa >= step.from ? 1 : 0) - step.emax;
}

/// The E8M0 code for a maximum with these float32 bits, sign clear: 0 for zero, 255 (NaN) for Inf,
/// NaN and what the rule makes of 2^128; exponents are clamped to [-127, 127]. `draw`: 32 random
/// bits of the block.
MX_HD inline int scale_code(const rule_step& step, std::uint32_t amax_bits,
                            std::uint32_t draw = 0) {
    if (amax_bits == 0) return 0;
    if (step.drawn_bits != 0) amax_bits += draw >> (32 - step.drawn_bits);
    if (amax_bits >= step.nan_from) return format::e8m0_nan;
    const int code = scale_exponent(step, amax_bits) + format::e8m0_bias;
    return code < 0 ? 0 : code > format::e8m0_max ? format::e8m0_max : code;
}

}  // namespace mx::scale
