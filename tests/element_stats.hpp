// SPDX-License-Identifier: Apache-2.0
// What the quantizer without codes counts of a matrix.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libmx/codec/block_params.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/engine/element_quantizer.hpp"
#include "tests/catch.hpp"

namespace mx::tests {

/// The totals of `x`, rows x cols, in blocks of block_rows x block_cols, under a recipe that has no
/// codes of blocks.
inline block::segment_stats element_stats(const std::string& recipe, std::span<const float> x,
                                          std::uint64_t rows, std::uint64_t cols,
                                          std::uint64_t block_rows, std::uint64_t block_cols) {
    const codec::block_params p =
        codec::params_of(codec::parse_recipe(recipe), {engine::finite_amax(x)});
    CHECK_FALSE(p.has_blocks);
    const codec::placed_segment s{{9, 0, cols, rows, cols, block_rows, block_cols}, 0, 0};
    const codec::recipe_request asked{.params = &p, .parts = true};
    block::segment_stats out{};
    engine::make_element_quantizer()->run(
        {{tensor::dtype::f32, std::as_bytes(x).data(), cols}, rows, cols}, {&s, 1}, {&asked, 1},
        [&](std::size_t, std::span<const codec::segment_result> r) { out = *r.front().stats; });
    return out;
}

}  // namespace mx::tests
