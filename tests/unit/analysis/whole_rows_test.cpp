// SPDX-License-Identifier: Apache-2.0
// Dialect systems-scaling raises exponents by column over all blocks of a row: the pipeline must
// process whole rows, even if a row is longer than a segment.
#include <cmath>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

constexpr std::size_t rows = 3;
constexpr std::size_t cols = 9000;  // two segments and a short block

// Every column's largest value is in the last third of its row. It exceeds 1.75 times a power of
// two in the columns in which the largest of the first two thirds does not.
std::vector<float> values() {
    std::vector<float> x(rows * cols);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool loud = i % cols > 2 * cols / 3;
        const bool even = i % cols % 32 % 2 == 0;
        const float mantissa = even == loud ? 1.875f : 1.125f;
        x[i] = mantissa * (loud ? 64.0f : 1.0f) + static_cast<float>(i % 7) * 0.01f;
    }
    return x;
}

double rmse_by_rows(const std::vector<float>& x, const codec::block_params& p) {
    block::exact_totals sums;
    std::vector<std::uint8_t> bump(32), codes(32);
    for (std::size_t r = 0; r < rows; ++r) {
        const std::span<const float> row(x.data() + r * cols, cols);
        codec::bumps_of_row(row, bump);
        for (std::size_t c = 0; c < cols; c += 32) {
            const auto block = row.subspan(c, std::min<std::size_t>(32, cols - c));
            codec::block_place place{0, 0, cols, static_cast<int>(block.size())};
            place.bump = bump.data();
            codec::quantize_block(p, block, place, codes, {}, &sums);
        }
    }
    return std::sqrt(sums.error2().value() / static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("exponents are raised by whole rows, however long") {
    const codec::recipe r = codec::parse_recipe("mxfp8:dialect=systems-scaling");
    const std::vector<float> x = values();
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {rows, cols}, x);
    analysis::analysis_request request;
    request.recipes = {r, codec::parse_recipe("mxfp8:dialect=systems-scaling,scale=floor")};
    const analysis::analysis a = analysis::analyze(model.all(), request, {});
    const double bumped = a.results[0].rmse;
    const double plain = a.results[1].rmse;
    CHECK(bumped == rmse_by_rows(x, codec::params_of(r)));
    CHECK(std::abs(bumped - plain) > 0.01 * plain);
}
