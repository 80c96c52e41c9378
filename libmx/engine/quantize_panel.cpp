// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/quantize_panel.hpp"

#include <algorithm>
#include <span>

namespace mx::engine {
namespace {

// Where the first element of a block of a segment lies in the panel.
std::size_t place_in_panel(const quantized_segment& s, const panel& where,
                           const codec::block_extent& e) {
    return static_cast<std::size_t>((s.at.batch * where.rows + s.at.row + e.row) * where.cols +
                                    s.at.col + e.col);
}

void put_codes(const quantized_segment& s, const panel& where, const codec::block_results& d,
               std::vector<std::uint8_t>& to) {
    // Rows of blocks without padding are rows of the panel.
    const bool rows = s.place.block_rows == 1 && s.place.block_cols == d.stride;
    const std::size_t step = rows ? static_cast<std::size_t>(s.place.grid_cols()) : 1;
    for (std::size_t b = 0; b < d.blocks; b += step) {
        const codec::block_extent e = codec::extent_of(s.place, b);
        const auto width = static_cast<std::size_t>(rows ? s.place.cols : e.cols);
        const std::uint8_t* from = d.codes + b * d.stride;
        std::size_t at = place_in_panel(s, where, e);
        for (std::uint64_t r = 0; r < e.rows; ++r) {
            std::copy_n(from, width, to.data() + at);
            from += width;
            at += where.cols;
        }
    }
}

void put_values(const quantized_segment& s, const panel& where, const codec::block_params& params,
                const codec::block_results& d, std::vector<float>& room, std::vector<float>& to) {
    for (std::size_t b = 0; b < d.blocks; ++b) {
        const codec::block_extent e = codec::extent_of(s.place, b);
        std::size_t at = place_in_panel(s, where, e);
        if (e.rows == 1) {
            codec::values_of_block(params, d, b, std::span(to).subspan(at, e.size()));
            continue;
        }
        room.resize(e.size());
        codec::values_of_block(params, d, b, room);
        for (std::uint64_t r = 0; r < e.rows; ++r, at += where.cols) {
            std::copy_n(room.data() + r * e.cols, e.cols, to.data() + at);
        }
    }
}

}  // namespace

void quantize_panel(panel_quantizer& by, const codec::block_params& params, const block::grid& g,
                    const panel& where, const codec::stored_values& values, std::uint64_t tensor_id,
                    quantized_panel& to, const on_blocks& report) {
    const codec::recipe_request request{&params, codec::detail_for_scales(params), false,
                                        !to.values.empty()};
    std::vector<float> room;
    by.run(g, where, values, tensor_id, {&request, 1}, [&](const quantized_segment& s) {
        const codec::block_results& d = s.by_recipe.front().of_blocks;
        if (!to.codes.empty()) put_codes(s, where, d, to.codes);
        if (!to.values.empty()) put_values(s, where, params, d, room, to.values);
        const auto across = static_cast<std::size_t>(s.place.grid_cols());
        for (std::size_t b = 0; b < d.blocks; b += across) report(s.index_of(b), d, b, across);
    });
}

}  // namespace mx::engine
