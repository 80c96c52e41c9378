// SPDX-License-Identifier: Apache-2.0
// THE LIST of operand formats: the meaning of codes in a matrix unit. Formats that are also element
// formats use those rows; wider formats, and CDNA3's, are defined here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/macros.hpp"
#include "libmx/base/named.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/gemm/accumulator.hpp"

namespace mx::gemm {

/// Which codes are not numbers.
enum class operand_specials : std::uint8_t {
    none,  ///< all finite
    fn,    ///< all-ones magnitude is NaN
    ieee,  ///< infinities and NaNs in the largest exponent field
    fnuz,  ///< the code of -0 is NaN
};

/// A sign, an exponent field and a mantissa field, from the most significant bit.
struct operand_format {
    std::string_view name;
    operand_set member = takes_f32;  ///< the bit by which a model takes it
    int exponent_bits = 8;
    int mantissa_bits = 23;  ///< m; a product of two has m + m fraction bits
    int bias = 127;
    operand_specials special = operand_specials::ieee;
    int dropped_bits = 0;  ///< low bits of the code that the unit cuts off on entry (tf32)

    /// Bits of one code, including dropped ones.
    MX_HD constexpr int code_bits() const {
        return 1 + exponent_bits + mantissa_bits + dropped_bits;
    }
    /// The exponent of zero, of subnormals and of the smallest normal number.
    MX_HD constexpr int least_exponent() const { return 1 - bias; }
};

namespace detail {
constexpr operand_specials specials_of(format::specials s) {
    if (s == format::specials::fn) return operand_specials::fn;
    return s == format::specials::ieee ? operand_specials::ieee : operand_specials::none;
}
// A missing row is a compile error.
constexpr operand_format element(std::string_view name, operand_set member) {
    const format::element_format& f = *format::find_element_format(name);
    return {f.name, member, f.exponent_bits, f.mantissa_bits, f.bias, specials_of(f.special), 0};
}
}  // namespace detail

inline constexpr std::array operand_formats{
    operand_format{"f32", takes_f32, 8, 23, 127, operand_specials::ieee, 0},
    operand_format{"tf32", takes_tf32, 8, 10, 127, operand_specials::ieee, 13},
    operand_format{"bf16", takes_bf16, 8, 7, 127, operand_specials::ieee, 0},
    operand_format{"f16", takes_f16, 5, 10, 15, operand_specials::ieee, 0},
    detail::element("e4m3", takes_fp8),
    detail::element("e5m2", takes_fp8),
    detail::element("e3m2", takes_fp6),
    detail::element("e2m3", takes_fp6),
    detail::element("e2m1", takes_fp4),
    operand_format{"e4m3fnuz", takes_fnuz, 4, 3, 8, operand_specials::fnuz, 0},
    operand_format{"e5m2fnuz", takes_fnuz, 5, 2, 16, operand_specials::fnuz, 0},
};

/// The row named `name`, or nullptr.
constexpr const operand_format* find_operand_format(std::string_view name) {
    return base::find_named(operand_formats, name);
}

/// Block scales by the units' names: the bit, the row of the scale format and the block size.
struct operand_scale {
    scale_set bit;
    std::string_view format;  ///< a row of format::scale_formats
    std::size_t block;
};
inline constexpr std::array operand_scales{
    operand_scale{scales_e8m0_32, "e8m0", 32},
    operand_scale{scales_e8m0_16, "e8m0", 16},
    operand_scale{scales_ue4m3_16, "ue4m3", 16},
};

/// The row with this format and block, or nullptr.
constexpr const operand_scale* find_operand_scale(std::string_view format, std::size_t block) {
    for (const operand_scale& s : operand_scales) {
        if (s.format == format && s.block == block) return &s;
    }
    return nullptr;
}

}  // namespace mx::gemm
