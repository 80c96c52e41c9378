// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/block_vectors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/fractional_element.hpp"

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
                              std::size_t row_blocks, std::optional<float> tensor_scale) {
    require_blocks_alone(r);
    codec::block_params p = codec::params_of(r, facts_of(input));
    block_vectors out;
    if (codec::has_tensor_scale(r)) out.tensor_scale = base::bits_of(p.tensor.stored);
    if (tensor_scale) codec::set_tensor_scale(p, *tensor_scale);
    out.block_elements = elements_of_block(r);
    out.code.resize(input.size());
    std::vector<float> values(out.block_elements);
    codec::block_place place;
    place.tensor_id = base::tensor_id("input");
    place.cols = r.block.cols;
    place.row_stride = static_cast<std::uint64_t>(r.block.cols);
    const bool bumped = codec::bumps_positions(r);
    const std::size_t row = row_blocks * out.block_elements;
    std::vector<std::uint8_t> bump(static_cast<std::size_t>(r.block.cols));
    for (std::size_t at = 0; at < input.size(); at += out.block_elements) {
        place.first = at;
        if (bumped && at % row == 0) {
            codec::bumps_of_row(input.subspan(at, row), bump);
            place.bump = bump.data();
        }
        if (p.outer_areas && at % row == 0) {
            out.row_amax.push_back(facts_of(input.subspan(at, row)).amax_bits);
            p.tensor = codec::outer_scale(p.outer, base::float_from_bits(out.row_amax.back()));
        }
        const std::span<std::uint8_t> codes(out.code.data() + at, out.block_elements);
        const block::block_stats stats =
            codec::quantize_block(p, input.subspan(at, out.block_elements), place, codes, values);
        out.scale_code.push_back(stats.scale_code);
        out.scale.push_back(base::bits_of(stats.scale));
        out.offset.push_back(stats.offset);
        if (p.select != codec::four_over_six::none) {
            // If both candidates give the same code, it counts as the candidate for 6.
            const std::uint8_t six = codec::choose_scale(p, stats.amax, p.largest).code;
            out.pick.push_back(stats.scale_code == six ? 6 : 4);
        }
        for (std::size_t i = 0; i < out.block_elements; ++i) {
            out.dequant.push_back(base::bits_of(values[i]));
            out.element_value.push_back(base::bits_of(p.value[codes[i]]));
        }
    }
    return out;
}

}  // namespace mx::conformance::vectors
