// SPDX-License-Identifier: Apache-2.0
// THE TABLE of element formats. A row has the independent properties; everything else (limits,
// masks, special codes) is derived from them. Codes are at most 8 bits; wide_formats.hpp has
// others.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/macros.hpp"
#include "libmx/base/named.hpp"

namespace mx::format {

/// How codes become numbers.
enum class number_kind : std::uint8_t {
    floating,  ///< sign, biased exponent, mantissa; exponent field 0 holds zero and subnormals
    fixed,     ///< two's complement, value = code / 2^(bits-2) (OCP MX 1.0 section 5.3.4)
};

/// What the codes of the largest exponent field mean.
enum class specials : std::uint8_t {
    none,  ///< all finite (FP6, FP4, integers)
    fn,    ///< all-ones magnitude is NaN, no infinity (E4M3: OCP FP8 1.0 section 4)
    ieee,  ///< infinity and NaNs, as in IEEE 754 (E5M2)
};

/// One element format. Sources: OCP FP8 1.0, OCP MX 1.0 table 2 and section 5.3; E3M0 and INT4
/// after Yang et al.; intN as 1.(N-2)-bit fixed point like MXINT8.
struct element_format {
    std::string_view name;
    number_kind kind;
    int exponent_bits;  ///< floating only
    int mantissa_bits;  ///< stored fraction bits; fixed: bits - 2
    int bias;           ///< floating only
    specials special;
    bool has_sign;                 ///< false for scale formats that reuse this row type (UE4M3)
    std::string_view safetensors;  ///< dtype name in safetensors, "U8" if there is none
    std::string_view summary;
    /// Without a sign: negative numbers convert to 0 (UE5M3), not as their magnitude (UE4M3).
    bool clamps_negative = false;

    constexpr bool floating() const { return kind == number_kind::floating; }
    /// Bits of one code.
    constexpr int bits() const {
        return floating() ? int{has_sign} + exponent_bits + mantissa_bits : mantissa_bits + 2;
    }
    /// Magnitude bits: code without its sign (floating), or all but the sign bit (fixed).
    constexpr int magnitude_bits() const { return bits() - int{has_sign}; }
    constexpr int codes() const { return 1 << bits(); }
    constexpr std::uint32_t sign_bit() const { return has_sign ? 1u << (bits() - 1) : 0u; }
    constexpr std::uint32_t code_mask() const { return ~0u >> (32 - bits()); }
    /// Exponent of the smallest normal number (fixed: of the leading integer bit, 0).
    constexpr int emin() const { return floating() ? 1 - bias : 0; }
    /// Exponent of the quantum below emin: value = magnitude code * 2^quantum there.
    constexpr int quantum() const { return emin() - mantissa_bits; }
    /// Largest finite magnitude code of positive values.
    constexpr std::uint32_t max_code() const {
        const std::uint32_t all_ones = (1u << magnitude_bits()) - 1u;
        if (special == specials::fn) return all_ones - 1u;
        // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): bits are not negative
        if (special == specials::ieee) return all_ones - (1u << mantissa_bits);
        return all_ones;
    }
    /// The largest exponent of a finite value ("emax" of the specification).
    constexpr int emax() const {
        return floating() ? static_cast<int>(max_code() >> mantissa_bits) - bias : 0;
    }
    /// Significand of the largest value, as an integer with mantissa_bits fraction bits.
    constexpr std::uint32_t max_significand() const {
        if (!floating()) return max_code();
        return (1u << mantissa_bits) | (max_code() & ((1u << mantissa_bits) - 1u));
    }
    /// The float32 mantissa field of the largest value (0x600000 for 1.75 * 2^k).
    constexpr std::uint32_t max_f32_mantissa() const {
        return (max_significand() << (23 - mantissa_bits)) & 0x007fffffu;
    }
    constexpr bool has_subnormals() const { return floating() && mantissa_bits > 0; }
    /// The canonical NaN code (positive), or -1 if the format has none.
    constexpr int nan_code() const {
        if (special == specials::none) return -1;
        return static_cast<int>((1u << magnitude_bits()) - 1u);
    }
};

namespace detail {
constexpr element_format floating(std::string_view name, int e, int m, int bias, specials s,
                                  std::string_view st, std::string_view summary) {
    return {name, number_kind::floating, e, m, bias, s, true, st, summary};
}
constexpr element_format fixed(std::string_view name, int bits, std::string_view st,
                               std::string_view summary) {
    return {name, number_kind::fixed, 0, bits - 2, 0, specials::none, true, st, summary};
}
}  // namespace detail

inline constexpr std::array element_formats{
    detail::floating("e4m3", 4, 3, 7, specials::fn, "F8_E4M3", "OCP FP8, no Inf, max 448"),
    detail::floating("e5m2", 5, 2, 15, specials::ieee, "F8_E5M2", "OCP FP8, Inf and NaN"),
    detail::floating("e3m2", 3, 2, 3, specials::none, "F6_E3M2", "OCP MXFP6"),
    detail::floating("e2m3", 2, 3, 1, specials::none, "F6_E2M3", "OCP MXFP6"),
    detail::floating("e2m1", 2, 1, 1, specials::none, "F4", "OCP MXFP4"),
    detail::floating("e3m0", 3, 0, 3, specials::none, "U8", "power-of-two FP4 (Yang et al.)"),
    detail::floating("e1m2", 1, 2, 0, specials::none, "U8", "uniform FP4, k/2"),
    detail::fixed("int8", 8, "U8", "OCP MXINT8, k/64"),
    detail::fixed("int4", 4, "U8", "k/4 (Yang et al.)"),
    detail::fixed("int2", 2, "U8", "k"),
    detail::fixed("int3", 3, "U8", "k/2"),
    detail::fixed("int5", 5, "U8", "k/8"),
    detail::fixed("int6", 6, "U8", "k/16"),
    detail::fixed("int7", 7, "U8", "k/32"),
};

/// The row named `name`, or nullptr.
constexpr const element_format* find_element_format(std::string_view name) {
    return base::find_named(element_formats, name);
}

}  // namespace mx::format
