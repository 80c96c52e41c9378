// SPDX-License-Identifier: Apache-2.0
// Inputs of recorded conversions: all of bfloat16 and binary16, stratified float32, and inputs of
// stochastic rounding.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "libmx/conformance/vectors/conversions.hpp"

namespace mx::conformance::vectors {

/// Must change whenever the same seed gives other inputs.
inline constexpr std::string_view conversion_inputs_version = "conversion-inputs/1";

/// The 65536 values of bfloat16 (f16x2 sources: of binary16) as float32 bits, in ascending order of
/// their 16-bit patterns.
std::vector<std::uint32_t> all_halves(conversion_input from);

/// For each sign and exponent field: the 8 lowest and 8 highest mantissas; every rounding boundary
/// of the listed formats with the float32 on each side; and 64 random mantissas. Then NaNs with
/// several payloads.
std::vector<std::uint32_t> stratified_floats(std::uint64_t seed);

/// Cells of the hash over all float32 values: one per sign and exponent field.
inline constexpr std::uint32_t float_cells = 512;
inline constexpr std::uint32_t cell_floats = 1u << 23;

/// For each cell, the sum of hash_term(x, convert(x)) over every `stride`-th float32 x in it.
std::vector<std::uint64_t> cell_hashes(const narrower& convert, std::uint32_t stride);

/// Four values (lowest part of the result first; two for pairs) and the random word.
struct stochastic_input {
    std::array<std::uint32_t, 4> x;
    std::uint32_t random;
};

/// For each value of the result and each class of input (normal, subnormal result, below half of
/// the smallest value, largest, beyond the largest, Inf, NaN): all 256 values of each random byte
/// with the other bytes 0 and 0xff, and every word with a single bit set; then `count` random
/// inputs.
std::vector<stochastic_input> stochastic_inputs(const stochastic_narrowing& row, std::uint64_t seed,
                                                std::size_t count);

}  // namespace mx::conformance::vectors
