// SPDX-License-Identifier: Apache-2.0
// `mx verify` without files: this build on this machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

struct build_check {
    std::vector<codec::recipe> recipes;  ///< empty: of every preset, rule, rounding and dialect
    std::uint64_t seed = 0;              ///< of the sample
    bool exact = false;                  ///< the reference against the oracle, too
    std::size_t show = 10;               ///< differences that are listed
    int threads = 0;
    bool quiet = false;
};

/// What a recipe makes of a sample of float32 values, as bits; NaNs are one.
struct outcome {
    std::vector<std::uint32_t> codes;   ///< by element; both empty where the scale of a block
    std::vector<std::uint32_t> scales;  ///< differs within it, which no codes describe
    std::vector<std::uint32_t> offsets;
    std::vector<std::uint32_t> values;
    bool operator==(const outcome&) const = default;
};

/// A matrix, whose draws are those of a tensor named "input".
struct sample {
    codec::recipe of;
    std::uint64_t rows = 1, cols = 0;
    std::vector<float> values;
};

/// The bits of `x`; those of every NaN are one.
std::uint32_t bits_of(float x);
/// The values of `s` as they are quantized: rotated if the recipe rotates.
std::vector<float> prepared(const sample& s);
/// Dequantized values as the recipe returns them, rotated back.
std::vector<std::uint32_t> returned(const sample& s, std::vector<float> values);

/// By the oracle, where the build has it. Elements without a code have that of `reference`.
outcome outcome_by_oracle(const sample& s, const outcome& reference);

/// Compares every backend of this machine with the reference. The document mx.build-check/1 has a
/// row by backend and preset, and the first differences.
report::document check_build(const build_check& what);

}  // namespace mx::app
