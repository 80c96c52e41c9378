// SPDX-License-Identifier: Apache-2.0
// Codes to numbers. Every value of every format is a float32.
#pragma once

#include <cstdint>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"

namespace mx::format {

/// The value of `code` (bits above the format's width are ignored); Inf and NaN in formats that
/// have them. Zero keeps its sign.
MX_HD inline float decode(const element_format& f, std::uint32_t code) {
    code &= f.code_mask();
    if (!f.floating()) {
        const auto n = static_cast<std::int32_t>(code);
        const std::int32_t k = (code & f.sign_bit()) != 0 ? n - f.codes() : n;
        return static_cast<float>(k) / static_cast<float>(1 << f.mantissa_bits);
    }
    const bool negative = (code & f.sign_bit()) != 0;
    const std::uint32_t magnitude = f.has_sign ? code & ~f.sign_bit() : code;
    float value = 0.0f;
    if (magnitude > f.max_code()) {
        const bool infinite = f.special == specials::ieee && magnitude == f.max_code() + 1;
        value = infinite ? std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
    } else {
        const std::uint32_t field = magnitude >> f.mantissa_bits;
        const std::uint32_t fraction = magnitude & ((1u << f.mantissa_bits) - 1u);
        const std::uint32_t significand = field == 0 ? fraction : fraction | 1u << f.mantissa_bits;
        const int exponent = f.quantum() + (field == 0 ? 0 : static_cast<int>(field) - 1);
        value = static_cast<float>(significand) * base::exact_pow2f(exponent);
    }
    return negative ? -value : value;
}

/// 2^(code - 127) as a double; NaN for code 255. Code 0 is a float32 subnormal, so the value is
/// not built by shifting a float32 exponent.
MX_HD inline double decode_e8m0(int code) {
    if (code == e8m0_nan) return std::numeric_limits<double>::quiet_NaN();
    return base::exact_pow2(code - e8m0_bias);
}

/// The scale with code `code`, a float32 in every format with codes (scale_format::has_codes).
MX_HD inline float decode_scale(const scale_format& f, std::uint32_t code) {
    return f.is_number() ? decode(f.number, code)
                         : static_cast<float>(decode_e8m0(static_cast<int>(code)));
}

}  // namespace mx::format
