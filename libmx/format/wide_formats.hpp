// SPDX-License-Identifier: Apache-2.0
// Formats of more than 8 bits, without a table of codes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/format/element_formats.hpp"

namespace mx::format {

/// THE LIST of wide formats: f32 (no change) first.
inline constexpr std::array wide_formats{
    detail::floating("f32", 8, 23, 127, specials::ieee, "F32", "IEEE 754 binary32"),
    detail::floating("tf32", 8, 10, 127, specials::ieee, "F32", "float32 with 10 mantissa bits"),
    detail::floating("bf16", 8, 7, 127, specials::ieee, "BF16", "the upper half of a float32"),
    detail::floating("f16", 5, 10, 15, specials::ieee, "F16", "IEEE 754 binary16"),
};

/// The row of this name ("none" and "fp32" are "f32", "fp16" is "f16"), or nullptr.
constexpr const element_format* find_wide_format(std::string_view name) {
    if (name == "none" || name == "fp32") name = "f32";
    return base::find_named(wide_formats, name == "fp16" ? "f16" : name);
}

/// Rounds to a wide format in place and returns the number of changed values: bf16 and f16 to
/// nearest even (Inf on overflow), tf32 by dropping 13 bits as multipliers do; f32 changes nothing.
/// NaN stays NaN.
std::uint64_t round_to_wide(std::string_view name, std::span<float> x);

/// The binary16 bits of the float32 `x`, to nearest even, Inf on overflow; NaN becomes 0x7fff.
std::uint16_t half_bits(float x);

}  // namespace mx::format
