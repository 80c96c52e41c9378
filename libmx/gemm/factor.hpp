// SPDX-License-Identifier: Apache-2.0
// Codes as unpacked by a matrix unit: a signed significand and the alignment exponent.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::gemm {

enum class value_class : std::uint8_t { finite, infinite, nan };

/// significand * 2^(exponent - m), where m is the format's number of mantissa bits. Subnormals are
/// not normalized unless the model says so: they align at the format's smallest exponent. Inf has
/// significand +-1.
struct factor {
    std::int32_t significand = 0;
    std::int16_t exponent = 0;
    value_class what = value_class::finite;
    bool negative = false;  ///< the sign bit, of zeros too
};

/// Unpacks `code`; ignores bits above the format's width.
MX_HD inline factor unpack(const operand_format& f, subnormal_alignment how, std::uint32_t code) {
    code >>= f.dropped_bits;
    const std::uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
    const std::uint32_t magnitude = code & (sign_bit - 1u);
    const std::uint32_t fields = (1u << f.exponent_bits) - 1u;
    const std::uint32_t field = magnitude >> f.mantissa_bits;
    const std::uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1u);
    factor x;
    x.negative = (code & sign_bit) != 0;
    const int sign = x.negative ? -1 : 1;
    if (f.special == operand_specials::ieee && field == fields) {
        x.what = mantissa == 0 ? value_class::infinite : value_class::nan;
        x.significand = sign;
        return x;
    }
    const bool fn_nan = f.special == operand_specials::fn && magnitude == sign_bit - 1u;
    const bool fnuz_nan = f.special == operand_specials::fnuz && x.negative && magnitude == 0;
    if (fn_nan || fnuz_nan) {
        x.what = value_class::nan;
        return x;
    }
    std::uint32_t significand = field == 0 ? mantissa : mantissa | 1u << f.mantissa_bits;
    int exponent = field == 0 ? f.least_exponent() : static_cast<int>(field) - f.bias;
    if (field == 0 && mantissa != 0 && how == subnormal_alignment::leading_bit) {
        const int shift = f.mantissa_bits - base::floor_log2(mantissa);
        significand <<= shift;
        exponent -= shift;
    }
    x.significand = sign * static_cast<std::int32_t>(significand);
    x.exponent = static_cast<std::int16_t>(exponent);
    return x;
}

/// A block's scale: significand * 2^(exponent - fraction bits of the scale format).
struct scale_factor {
    std::int32_t significand = 1;
    std::int16_t exponent = 0;
    bool nan = false;
};

/// Fraction bits of a scale's significand.
MX_HD constexpr int scale_fraction_bits(std::uint32_t scaling) {
    return scaling == scales_ue4m3_16 ? 3 : 0;
}

/// Unpacks a scale code. E8M0 is 2^(code - 127); UE4M3 ignores the sign bit.
MX_HD inline scale_factor unpack_scale(std::uint32_t scaling, std::uint8_t code) {
    scale_factor s;
    if (scaling == scales_ue4m3_16) {
        const std::uint32_t magnitude = code & 0x7fu;
        const std::uint32_t field = magnitude >> 3;
        s.nan = magnitude == 0x7fu;
        s.significand = static_cast<std::int32_t>((magnitude & 7u) | (field == 0 ? 0u : 8u));
        s.exponent = static_cast<std::int16_t>(field == 0 ? -6 : static_cast<int>(field) - 7);
    } else {
        s.nan = code == format::e8m0_nan;
        s.exponent = static_cast<std::int16_t>(static_cast<int>(code) - format::e8m0_bias);
    }
    return s;
}

}  // namespace mx::gemm
