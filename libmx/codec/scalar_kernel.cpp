// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/scalar_kernel.hpp"

#include <array>
#include <span>
#include <vector>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/dialect_bumps.hpp"

namespace mx::codec::scalar {

namespace {

// The exponents that systems-scaling raises in the grid row that begins with block `first`.
void find_bumps(const block_run& run, std::size_t first, std::vector<std::uint8_t>& bump) {
    std::vector<float> row;
    const auto across = static_cast<std::size_t>(run.place.grid_cols());
    for (std::size_t b = first; b < first + across; ++b) {
        const float* x = run.x + b * run.stride;
        row.insert(row.end(), x, x + extent_of(run.place, b).size());
    }
    bump.resize(run.place.block_size());
    bumps_of_row(row, bump);
}

}  // namespace

block::block_stats quantize_one(const block_params& p, const block_run& run, std::size_t block,
                                block_details& details, const std::uint8_t* bump) {
    const block_extent e = extent_of(run.place, block);
    const std::size_t lies = block * run.stride;
    const std::span<const float> x(run.x + lies, e.size());
    block_place place = place_of(run.place, e);
    place.bump = bump;
    std::span<float> values;
    if (float* const to = details.values_of(p, run)) values = std::span(to + lies, e.size());
    if (details.wanted != detail::none) {
        const std::span codes(details.codes.data() + lies, e.size());
        const block::block_stats s = quantize_block(p, x, place, codes, values, details.parts);
        details.put(block, s);
        return s;
    }
    std::array<std::uint8_t, 4096> few;
    if (e.size() <= few.size()) {
        const std::span codes = std::span(few).first(e.size());
        return quantize_block(p, x, place, codes, values, details.parts);
    }
    std::vector<std::uint8_t> many(e.size());
    return quantize_block(p, x, place, many, values, details.parts);
}

block::segment_stats quantize(const block_params& p, block_run& run, block_details& details) {
    details.fit(run);
    block::segment_stats out{};
    block::segment_lanes lanes;
    block::part_lanes parts;
    std::vector<std::uint8_t> bump;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (p.bumps && b % run.place.grid_cols() == 0) find_bumps(run, b, bump);
        const block::block_stats s =
            quantize_one(p, run, b, details, p.bumps ? bump.data() : nullptr);
        block::add_counts(out, s);
        lanes.add(b % block::segment_lanes::count, s.sum);
        if (details.parts) parts.add(b % block::segment_lanes::count, s.part);
    }
    out.sum = lanes.sum();
    if (details.parts) out.part = parts.sum();
    return out;
}

}  // namespace mx::codec::scalar
