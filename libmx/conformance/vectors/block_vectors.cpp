// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/block_vectors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/float_scale.hpp"

namespace mx::conformance::vectors {

codec::tensor_facts facts_of(std::span<const float> values) {
    codec::tensor_facts facts;
    for (const float x : values) {
        const std::uint32_t magnitude = base::bits_of(x) & base::f32_magnitude_mask;
        if (magnitude < base::f32_infinity) facts.amax_bits = std::max(facts.amax_bits, magnitude);
    }
    return facts;
}

std::size_t elements_of_block(const codec::recipe& r) {
    return static_cast<std::size_t>(r.block.rows) * static_cast<std::size_t>(r.block.cols);
}

void require_blocks_alone(const codec::recipe& r) {
    codec::refuse_scale_files(r);
    if (codec::has_outer_areas(r) && r.outer.what != codec::outer_choice::kind::row) {
        codec::refuse_outer_areas(r, "and vectors hold rows of blocks; leave out outer");
    }
    if (r.rotate.what == transform::kind::none) return;
    base::refuse(
        "recipe '{}': vectors hold blocks as they are quantized, after any rotation; leave "
        "transform out",
        codec::to_string(r));
}

std::size_t row_blocks_of(const codec::recipe& r) {
    return codec::bumps_positions(r) || codec::has_outer_areas(r) ? 2 : 1;
}

block_vectors quantize_blocks(const codec::recipe& r, std::span<const float> input,
                              std::size_t row_blocks, std::optional<float> tensor_scale,
                              int threads) {
    require_blocks_alone(r);
    codec::block_params p = codec::params_of(r, facts_of(input));
    const std::size_t width = elements_of_block(r), blocks = input.size() / width;
    const std::size_t rows = blocks / row_blocks;
    block_vectors out;
    if (codec::has_tensor_scale(r)) out.tensor_scale = base::bits_of(p.tensor.stored);
    if (tensor_scale) codec::set_tensor_scale(p, *tensor_scale);
    out.block_elements = width;
    out.scale_code.resize(blocks);
    out.scale.resize(blocks);
    out.offset.resize(blocks);
    out.pick.resize(p.select == codec::four_over_six::none ? 0 : blocks);
    out.row_amax.resize(p.outer_areas ? rows : 0);
    out.code.resize(input.size());
    out.dequant.resize(input.size());

    // Rows are quantized by themselves, many of them in one call of the loop.
    const std::size_t group = std::max<std::size_t>(1, 4096 / row_blocks);
    base::parallel_for((rows + group - 1) / group, threads, nullptr, [&](std::uint64_t g, int) {
        codec::block_params of_row = p;
        codec::block_place place;
        place.tensor_id = base::tensor_id("input");
        place.cols = r.block.cols;
        place.row_stride = static_cast<std::uint64_t>(r.block.cols);
        std::vector<std::uint8_t> bump(static_cast<std::size_t>(r.block.cols));
        std::vector<float> values(width);
        const std::size_t first = static_cast<std::size_t>(g) * group;
        for (std::size_t row = first; row < std::min(rows, first + group); ++row) {
            const auto elements = input.subspan(row * row_blocks * width, row_blocks * width);
            if (codec::bumps_positions(r)) {
                codec::bumps_of_row(elements, bump);
                place.bump = bump.data();
            }
            if (p.outer_areas) {
                out.row_amax[row] = facts_of(elements).amax_bits;
                of_row.tensor =
                    codec::outer_scale(p.outer, base::float_from_bits(out.row_amax[row]));
            }
            for (std::size_t b = row * row_blocks; b < (row + 1) * row_blocks; ++b) {
                place.first = b * width;
                const std::span<std::uint8_t> codes(out.code.data() + place.first, width);
                const block::block_stats stats = codec::quantize_block(
                    of_row, input.subspan(place.first, width), place, codes, values);
                out.scale_code[b] = stats.scale_code;
                out.scale[b] = base::bits_of(stats.scale);
                out.offset[b] = stats.offset;
                if (!out.pick.empty()) {
                    // If both candidates give the same code, it counts as the candidate for 6.
                    const std::uint8_t six =
                        codec::choose_scale(of_row, stats.amax, of_row.largest).code;
                    out.pick[b] = stats.scale_code == six ? 6 : 4;
                }
                std::ranges::transform(values, out.dequant.data() + place.first,
                                       [](float x) { return base::bits_of(x); });
            }
        }
    });
    return out;
}

}  // namespace mx::conformance::vectors
