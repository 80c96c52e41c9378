// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/mma_model.hpp"

#include "libmx/gemm/multiply.hpp"

namespace mx::conformance::vectors {
namespace {

// The rows of A or of B of the tiles of the gauss distribution.
gemm::operand generated(const mma_case& what, std::uint64_t seed, std::size_t rows, bool is_a) {
    const mma_distribution& gauss = *find_mma_distribution("gauss");
    gemm::operand x = empty_operand(what, is_a ? what.a : what.b, rows, what.depth());
    for (std::size_t i = 0; i < rows / (is_a ? mma_tile_rows : mma_tile_cols); ++i) {
        const mma_tile tile = generate_mma_tile(what, gauss, seed, i);
        const std::vector<std::uint32_t>& codes = is_a ? tile.a : tile.b;
        const std::vector<std::uint8_t>& scales = is_a ? tile.sfa : tile.sfb;
        x.codes.insert(x.codes.end(), codes.begin(), codes.end());
        x.scales.insert(x.scales.end(), scales.begin(), scales.end());
    }
    return x;
}

}  // namespace

gemm::operand empty_operand(const mma_case& what, const gemm::operand_format* format,
                            std::size_t rows, std::size_t depth) {
    gemm::operand x;
    x.rows = rows;
    x.depth = depth;
    x.format = format;
    if (what.scale != nullptr) {
        x.scaling = what.scale->bit;
        x.scale_block = what.scale->block;
    }
    return x;
}

std::vector<std::uint32_t> accumulated(const gemm::operand& a, const gemm::operand& b,
                                       std::span<const std::uint32_t> c,
                                       const gemm::accumulator& model) {
    gemm::arrangement how;
    how.accumulate_c = true;
    gemm::multiply_control control;
    control.threads = 1;
    return gemm::multiply(a, b, c, model, how, control);
}

std::vector<std::uint32_t> multiply_tile(const mma_case& what, const mma_tile& tile,
                                         bool accumulate, const gemm::accumulator& model) {
    gemm::operand a = empty_operand(what, what.a, mma_tile_rows, what.depth());
    a.codes = tile.a;
    a.scales = tile.sfa;
    gemm::operand b = empty_operand(what, what.b, mma_tile_cols, what.depth());
    b.codes = tile.b;
    b.scales = tile.sfb;
    const std::vector<std::uint32_t> zeros(tile.c.size(), 0u);
    return accumulated(a, b, accumulate ? tile.c : zeros, model);
}

gemm::operand generated_a(const mma_case& what, std::uint64_t seed, std::size_t rows) {
    return generated(what, seed, rows, true);
}

gemm::operand generated_b(const mma_case& what, std::uint64_t seed, std::size_t rows) {
    return generated(what, seed, rows, false);
}

std::uint32_t rounded_to_bf16(std::uint32_t bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

}  // namespace mx::conformance::vectors
