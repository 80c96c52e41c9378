// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/scalar_driver.hpp"

#include <array>
#include <span>
#include <vector>

#include "libmx/quantize/block_kernel.hpp"
#include "libmx/quantize/pack_blocks.hpp"

namespace mx::quantize::scalar {

bool available() { return true; }

void load(const stored_values& values, const segment_place& place, block_run& run) {
    pack_blocks(values, place, run);
}

block::block_stats quantize_one(const block_params& p, const block_run& run, std::size_t block,
                                block_details& details) {
    const block_extent e = extent_of(run.place, block);
    const std::span<const float> x(run.x + block * run.stride, e.size());
    const block_place place = place_of(run.place, e);
    if (details.wanted != detail::none) {
        const std::span codes(details.codes.data() + block * run.stride, e.size());
        const block::block_stats s = quantize_block(p, x, place, codes);
        details.put(block, s);
        return s;
    }
    std::array<std::uint8_t, 4096> few;
    if (e.size() <= few.size()) return quantize_block(p, x, place, std::span(few).first(e.size()));
    std::vector<std::uint8_t> many(e.size());
    return quantize_block(p, x, place, many);
}

block::segment_stats quantize(const block_params& p, block_run& run, block_details& details) {
    details.fit(run);
    block::segment_stats out{};
    block::segment_lanes lanes;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const block::block_stats s = quantize_one(p, run, b, details);
        block::add_counts(out, s);
        lanes.add(b % block::segment_lanes::count, s.sum);
    }
    out.sum = lanes.sum();
    return out;
}

}  // namespace mx::quantize::scalar
