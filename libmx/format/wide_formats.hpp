// SPDX-License-Identifier: Apache-2.0
// Formats of more than 8 bits, which have no code table.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace mx::format {

/// THE LIST of wide formats: f32 (no change) first.
inline constexpr std::array<std::string_view, 4> wide_formats{"f32", "tf32", "bf16", "f16"};

/// The entry of this name ("none" is "f32"); empty if there is none.
std::string_view find_wide_format(std::string_view name);

/// Rounds to a wide format in place and returns the number of changed values: bf16 and f16 to
/// nearest even (Inf on overflow), tf32 by dropping 13 bits as multipliers do; f32 changes nothing.
/// NaN stays NaN.
std::uint64_t round_to_wide(std::string_view name, std::span<float> x);

/// The binary16 bits of the float32 `x`, to nearest even, Inf on overflow; NaN becomes 0x7fff.
std::uint16_t half_bits(float x);

}  // namespace mx::format
