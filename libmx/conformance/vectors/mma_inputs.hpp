// SPDX-License-Identifier: Apache-2.0
// Inputs of matrix instructions, generated from a seed with integer arithmetic alone, so that a
// recording needs to contain only the outputs of the chip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/gemm/operand_formats.hpp"

namespace mx::conformance::vectors {

/// What is multiplied: one instruction, or a chain of `steps` instructions in which each D is the
/// next C.
struct mma_case {
    const gemm::operand_format* a = nullptr;
    const gemm::operand_format* b = nullptr;
    const gemm::operand_scale* scale = nullptr;  ///< nullptr: none
    bool f16 = false;                            ///< the accumulator: f16, else float32
    std::size_t instruction_k = 0;
    std::size_t steps = 1;

    bool operator==(const mma_case&) const = default;
    std::size_t depth() const { return instruction_k * steps; }
    std::size_t blocks() const { return scale == nullptr ? 0 : depth() / scale->block; }
    /// The format of C and D.
    const gemm::operand_format& accumulator() const;
};

/// A tile is A (rows x depth) times B transposed (columns x depth) plus C.
inline constexpr std::size_t mma_tile_rows = 16;
inline constexpr std::size_t mma_tile_cols = 8;
inline constexpr std::size_t mma_tile_outputs = mma_tile_rows * mma_tile_cols;

struct mma_tile {
    std::vector<std::uint32_t> a, b;     ///< codes, right-aligned
    std::vector<std::uint8_t> sfa, sfb;  ///< rows or columns x blocks; empty without scales
    std::vector<std::uint32_t> c;        ///< bits
};

class mma_tile_maker;

/// One way of generating a tile, and what it tests.
struct mma_distribution {
    std::string_view name;
    std::string_view aim;
    void (*fill)(mma_tile_maker& tile);
    /// Whether the instruction accumulates into C; otherwise it does not read C.
    bool accumulate = true;
    /// The number of probe tiles for a case, 0 if the probe does not apply; nullptr if any number
    /// of tiles can be generated.
    std::size_t (*probes)(const mma_case& what) = nullptr;
};

/// THE LIST: nine distributions, then directed probes.
std::span<const mma_distribution> mma_distributions();
const mma_distribution* find_mma_distribution(std::string_view name);

/// Must change whenever the same seed gives other inputs.
inline constexpr std::string_view mma_inputs_version = "mma-inputs/1";

/// Tile `index` of a distribution. The bytes are the same on every machine and do not depend on
/// other tiles.
mma_tile generate_mma_tile(const mma_case& what, const mma_distribution& d, std::uint64_t seed,
                           std::uint64_t index);

/// Hash of a tile's contents. Recordings store the sum over tiles.
std::uint64_t hash_of(const mma_tile& tile, std::uint64_t index);

}  // namespace mx::conformance::vectors
