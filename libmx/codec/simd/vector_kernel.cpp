// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/simd/vector_kernel.hpp"

#include <algorithm>
#include <array>

#include "libmx/base/bits.hpp"
#include "libmx/codec/scalar_kernel.hpp"

namespace mx::codec::simd {
namespace {

constexpr std::size_t batch = 16;

// Scratch of a thread.
struct workspace {
    block_scales scales;
    chunk_sums sums;
    centred_blocks centred;
    base::aligned_buffer<std::uint8_t> doubtful;
    base::aligned_buffer<block::block_sums> slow;  // in the order of the blocks
    base::aligned_buffer<block::block_parts> slow_parts;

    void fit(const block_run& run, bool parts) {
        const std::size_t blocks = (run.blocks + batch - 1) / batch * batch + batch;
        scales.code.room_for(blocks);
        scales.reciprocal.room_for(blocks);
        scales.scale.room_for(blocks);
        scales.slow.room_for(blocks);
        doubtful.room_for(blocks);
        centred.offset.room_for(blocks);
        centred.offset_bits.room_for(blocks);
        centred.ruled.room_for(blocks);
        centred.amax.room_for(blocks);
        centred.amin.room_for(blocks);
        centred.nonzero.room_for(blocks);
        const std::size_t chunks = run.blocks * ((run.stride + 31) / 32) + batch;
        sums.error2.room_for(chunks);
        sums.x2.room_for(chunks);
        sums.xd.room_for(chunks);
        sums.d2.room_for(chunks);
        sums.error.room_for(chunks);
        sums.in_x_error2.room_for(chunks);
        sums.in_x_x2.room_for(chunks);
        sums.in_x_xd.room_for(chunks);
        sums.in_x_d2.room_for(chunks);
        sums.with_parts = parts;
        if (!parts) return;
        sums.clamp_error2.room_for(chunks);
        sums.underflow_error2.room_for(chunks);
        sums.grid_error2.room_for(chunks);
        sums.in_x_clamp.room_for(chunks);
        sums.in_x_underflow.room_for(chunks);
        sums.in_x_grid.room_for(chunks);
    }
};

void keep_details(const block_run& run, const block_extremes& e, const centred_blocks* centred,
                  const block_scales& scales, block_details& details) {
    for (std::size_t b = 0; b < run.blocks; ++b) {
        details.scale_code.data()[b] = static_cast<std::uint8_t>(scales.code.data()[b]);
        details.offset.data()[b] = centred != nullptr ? centred->offset_bits.data()[b] : 0;
        details.amax.data()[b] = e.ruled[b];
        details.x_max.data()[b] = run.amax.data()[b];
        details.x_min.data()[b] = run.amin.data()[b];
    }
}

// Blocks of zeros only, slow ones left out.
std::uint64_t zero_blocks(const block_run& run, const block_scales& scales) {
    std::uint64_t count = 0;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        count +=
            static_cast<std::uint64_t>((run.amax.data()[b] == 0) & (scales.slow.data()[b] == 0));
    }
    return count;
}

// max |x| over the blocks, slow ones left out.
std::uint32_t largest(const block_run& run, const block_scales& scales) {
    std::uint32_t most = 0;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (scales.slow.data()[b] == 0) most = std::max(most, run.amax.data()[b]);
    }
    return most;
}

}  // namespace

block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details) {
    if (!takes(p) || details.wanted == detail::stats) {
        return scalar::quantize(p, run, details);
    }
    static thread_local workspace space;
    details.fit(run);
    space.fit(run, details.parts);
    const element_grid grid = grid_of(p);
    block_extremes extremes{run.amax.data(), run.amax.data(), run.amin.data(), run.nonzero.data()};
    if (p.has_offset) {
        const centred_blocks& c = space.centred;
        k.centre(run, p.range, space.centred);
        extremes = {c.ruled.data(), c.amax.data(), c.amin.data(), c.nonzero.data()};
    }
    k.scale(grid, extremes, run.blocks, space.scales);
    const bool all_fast = !p.has_offset && space.scales.slow_blocks == 0;
    space.sums.with_x2 =
        details.parts || !(all_fast && run.has_x2 && details.wanted == detail::none);
    if (grid.rounding == rounding_kind::stochastic) k.draw(run, p.seed);
    std::uint8_t* const codes = details.wanted == detail::none ? nullptr : details.codes.data();
    grid_counts counts;
    if (p.has_offset) {
        k.centred_elements(grid, run, space.centred, space.scales, codes, space.sums, counts);
    } else {
        k.elements(grid, run, space.scales, codes, space.sums, counts);
    }
    if (codes != nullptr) {
        keep_details(run, extremes, p.has_offset ? &space.centred : nullptr, space.scales, details);
    }
    block_verdicts verdicts;
    k.judge(grid, extremes, run.blocks, space.scales, verdicts, space.doubtful.data());

    block::segment_stats out{};
    block::segment_lanes lanes;
    if (space.scales.slow_blocks != 0) {
        block::block_sums* slow = space.slow.room_for(space.scales.slow_blocks);
        block::block_parts* parts = space.slow_parts.room_for(space.scales.slow_blocks);
        for (std::size_t b = 0; b < run.blocks; ++b) {
            if (space.scales.slow.data()[b] == 0) continue;
            const block::block_stats s = scalar::quantize_one(p, run, b, details);
            block::add_counts(out, s);
            *slow++ = s.sum;
            *parts++ = s.part;
        }
    }
    if (verdicts.doubtful != 0) {
        block_details none;
        for (std::size_t b = 0; b < run.blocks; ++b) {
            if (space.doubtful.data()[b] == 0) continue;
            const block::block_flags is = scalar::quantize_one(p, run, b, none).is;
            out.block.collapsed += is.collapsed ? 1u : 0u;
            out.block.saturated += is.saturated ? 1u : 0u;
            out.block.dead += is.dead ? 1u : 0u;
        }
    }
    k.add_blocks(run, p.has_offset, space.scales, space.sums, space.slow.data(), lanes);
    lanes.max_error = std::max(lanes.max_error, counts.max_error);
    out.sum = lanes.sum();
    if (details.parts) {
        block::part_lanes parts;
        k.add_parts(run, p.has_offset, space.scales, space.sums, space.slow_parts.data(), parts);
        out.part = parts.sum();
    }
    if (!space.sums.with_x2) {
        out.sum.x2 = run.x2;
    } else if (all_fast) {
        run.x2 = out.sum.x2;
        run.has_x2 = true;
    }

    // With offsets the verdicts are on x - O.
    const std::uint32_t most = p.has_offset ? largest(run, space.scales) : verdicts.amax;
    out.counted_max = std::max(out.counted_max, most);
    out.count.elements = run.place.elements();
    out.count.nonzero += verdicts.nonzero;
    out.count.overflow += counts.overflow;
    out.count.clamp += counts.clamp;
    out.count.top_code += counts.top_code;
    // Of all that was looked at, padding and slow blocks count as zeros that stay zero.
    out.count.underflow += counts.zero - (counts.slots - verdicts.nonzero);
    if (grid.smallest_normal != 0) out.count.subnormal += counts.subnormal - counts.zero;
    out.block.blocks = run.blocks;
    out.block.zero += p.has_offset ? zero_blocks(run, space.scales) : verdicts.zero;
    out.block.eligible += verdicts.eligible;
    out.block.collapsed += verdicts.collapsed;
    out.block.saturated += verdicts.saturated;
    out.block.dead += verdicts.dead;
    return out;
}

}  // namespace mx::codec::simd
