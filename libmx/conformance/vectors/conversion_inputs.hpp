// SPDX-License-Identifier: Apache-2.0
// Inputs of recorded conversions: all of bfloat16 and binary16, float32 in strata, and what
// stochastic rounding is asked.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "libmx/conformance/vectors/conversions.hpp"

namespace mx::conformance::vectors {

/// Changes whenever the same seed would give other inputs.
inline constexpr std::string_view conversion_inputs_version = "conversion-inputs/1";

/// The 65536 values of bfloat16 (f16x2 sources: of binary16), as float32 bits, in order of their
/// own bits.
std::vector<std::uint32_t> all_halves(conversion_input from);

/// For each sign and exponent field: the 8 lowest and 8 highest mantissas, every boundary of
/// rounding to a format of the list with one float32 on each side, 64 random mantissas. Then NaNs
/// of several payloads.
std::vector<std::uint32_t> stratified_floats(std::uint64_t seed);

/// Cells of the hash over all float32: one per sign and exponent field.
inline constexpr std::uint32_t float_cells = 512;
inline constexpr std::uint32_t cell_floats = 1u << 23;

/// Per cell the sum of hash_term(x, convert(x)) over every `stride`-th float32 x of it.
std::vector<std::uint64_t> cell_hashes(const narrower& convert, std::uint32_t stride);

/// Four values (lowest part of the result first; two for pairs) and the random word.
struct stochastic_input {
    std::array<std::uint32_t, 4> x;
    std::uint32_t random;
};

/// Per value of the result and per class of input (normal, with a subnormal result, below half of
/// the least, largest, beyond it, Inf, NaN): all 256 values of each random byte with the other
/// bytes 0 and 0xff, and a one that walks over the word; then `count` random ones.
std::vector<stochastic_input> stochastic_inputs(const stochastic_narrowing& row, std::uint64_t seed,
                                                std::size_t count);

}  // namespace mx::conformance::vectors
