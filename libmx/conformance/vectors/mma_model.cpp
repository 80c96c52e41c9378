// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/mma_model.hpp"

#include "libmx/gemm/multiply.hpp"

namespace mx::conformance::vectors {
namespace {

gemm::operand empty_operand(const mma_case& what, const gemm::operand_format* format,
                            std::size_t rows) {
    gemm::operand x;
    x.rows = rows;
    x.depth = what.depth();
    x.format = format;
    if (what.scale != nullptr) {
        x.scaling = what.scale->bit;
        x.scale_block = what.scale->block;
    }
    return x;
}

}  // namespace

std::vector<std::uint32_t> multiply_tile(const mma_case& what, const mma_tile& tile,
                                         bool accumulate, const gemm::accumulator& model) {
    gemm::operand a = empty_operand(what, what.a, mma_tile_rows);
    a.codes = tile.a;
    a.scales = tile.sfa;
    gemm::operand b = empty_operand(what, what.b, mma_tile_cols);
    b.codes = tile.b;
    b.scales = tile.sfb;
    gemm::arrangement how;
    how.accumulate_c = true;
    gemm::multiply_control control;
    control.threads = 1;
    const std::vector<std::uint32_t> zeros(tile.c.size(), 0u);
    return gemm::multiply(a, b, accumulate ? tile.c : zeros, model, how, control);
}

gemm::operand generated_a(const mma_case& what, std::uint64_t seed, std::size_t rows) {
    const mma_distribution& gauss = *find_mma_distribution("gauss");
    gemm::operand x = empty_operand(what, what.a, rows);
    for (std::size_t i = 0; i < rows / mma_tile_rows; ++i) {
        const mma_tile tile = generate_mma_tile(what, gauss, seed, i);
        x.codes.insert(x.codes.end(), tile.a.begin(), tile.a.end());
        x.scales.insert(x.scales.end(), tile.sfa.begin(), tile.sfa.end());
    }
    return x;
}

gemm::operand generated_b(const mma_case& what, std::uint64_t seed, std::size_t rows) {
    const mma_distribution& gauss = *find_mma_distribution("gauss");
    gemm::operand x = empty_operand(what, what.b, rows);
    for (std::size_t i = 0; i < rows / mma_tile_cols; ++i) {
        const mma_tile tile = generate_mma_tile(what, gauss, seed, i);
        x.codes.insert(x.codes.end(), tile.b.begin(), tile.b.end());
        x.scales.insert(x.scales.end(), tile.sfb.begin(), tile.sfb.end());
    }
    return x;
}

}  // namespace mx::conformance::vectors
