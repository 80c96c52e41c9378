// SPDX-License-Identifier: Apache-2.0
// The kernels of every instruction set that this build has.
#include "libmx/codec/simd/kernels.hpp"

#include <hwy/highway.h>

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/codec/segment_kernel.hpp"
#include "libmx/scale/rule_step.hpp"

#define MX_KERNELS(space)                                                                    \
    namespace space {                                                                        \
    int lanes();                                                                             \
    void load(const stored_values&, const segment_place&, block_run&);                       \
    void draw(block_run&, std::uint64_t);                                                    \
    void centre(const block_run&, range_kind, centred_blocks&);                              \
    void scale(const element_grid&, const block_extremes&, std::size_t, block_scales&);      \
    void elements(const element_grid&, const block_run&, const block_scales&, std::uint8_t*, \
                  chunk_sums&, grid_counts&);                                                \
    void centred_elements(const element_grid&, const block_run&, const centred_blocks&,      \
                          const block_scales&, std::uint8_t*, chunk_sums&, grid_counts&);    \
    void judge(const element_grid&, const block_extremes&, std::size_t, const block_scales&, \
               block_verdicts&, std::uint8_t*);                                              \
    void add_blocks(const block_run&, bool, const block_scales&, const chunk_sums&,          \
                    const block::block_sums*, block::segment_lanes&);                        \
    void add_parts(const block_run&, bool, const block_scales&, const chunk_sums&,           \
                   const block::block_parts*, block::part_lanes&);                           \
    constexpr kernels                                                                        \
        table{lanes, load,       draw,     centre, scale, elements, centred_elements,        \
              judge, add_blocks, add_parts};                                                 \
    }

namespace mx::codec::simd {
namespace {

bool is_rounding(format::rounding how) {
    using format::rounding;
    switch (how) {
        case rounding::rtne:
        case rounding::away:
        case rounding::ties_to_zero:
        case rounding::zero:
        case rounding::up:
        case rounding::down:
        case rounding::stochastic:
            return true;
        default:
            return false;
    }
}

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
        const auto fit_all = [](std::size_t count, auto&... buffers) {
            (buffers.room_for(count), ...);
        };
        const std::size_t blocks = (run.blocks + batch - 1) / batch * batch + batch;
        fit_all(blocks, scales.code, scales.reciprocal, scales.scale, scales.slow, doubtful,
                centred.offset, centred.offset_bits, centred.ruled, centred.amax, centred.amin,
                centred.nonzero);
        const std::size_t chunks = run.blocks * ((run.stride + 31) / 32) + batch;
        fit_all(chunks, sums.error2, sums.x2, sums.xd, sums.d2, sums.error, sums.in_x_error2,
                sums.in_x_x2, sums.in_x_xd, sums.in_x_d2);
        sums.with_parts = parts;
        if (!parts) return;
        fit_all(chunks, sums.clamp_error2, sums.underflow_error2, sums.grid_error2, sums.in_x_clamp,
                sums.in_x_underflow, sums.in_x_grid);
    }
};

void keep_details(const block_run& run, const block_extremes& e, const centred_blocks* centred,
                  const block_scales& scales, const block_results& to) {
    for (std::size_t b = 0; b < run.blocks; ++b) {
        to.scale_code[b] = static_cast<std::uint8_t>(scales.code.data()[b]);
        to.offset[b] = centred != nullptr ? centred->offset_bits.data()[b] : 0;
        to.amax[b] = e.ruled[b];
        to.x_max[b] = run.amax.data()[b];
        to.x_min[b] = run.amin.data()[b];
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

bool takes(const block_params& p) {
    const format::element_params& f = p.element;
    const bool by_code = f.floating && f.mantissa_bits == 0 &&
                         p.mode.how == format::rounding::rtne &&
                         p.mode.ties == format::tie_rule::even;
    return p.plain && scale::is_step(p.rule) && is_rounding(p.mode.how) && !p.mode.round_fraction &&
           f.has_sign && !by_code;
}

element_grid grid_of(const block_params& p) {
    const format::element_params& f = p.element;
    element_grid g{};
    g.fixed = !f.floating;
    g.least_exponent = static_cast<std::uint32_t>(f.emin + 127) << 23;
    g.magic_step = static_cast<std::uint32_t>(23 - f.mantissa_bits) << 23;
    g.max_positive = p.value[f.max_positive];
    g.smallest_normal = f.smallest_normal != 0 ? p.value[f.smallest_normal] : 0.0f;
    g.max_negative = g.fixed ? static_cast<float>(f.max_negative) * base::exact_pow2f(f.quantum)
                             : g.max_positive;
    g.bits = f.bits;
    g.code_shift = 23 - f.mantissa_bits;
    g.code_base = static_cast<std::uint32_t>(f.emin + 126) << f.mantissa_bits;
    g.inverse_quantum = base::exact_pow2f(-f.quantum);

    constexpr float never = 2.0f;
    constexpr float half_or_more = 0x1.fffffep-2f;  // more than the float below one half
    g.threshold_positive = g.threshold_negative = never;
    using format::rounding;
    switch (p.mode.how) {
        case rounding::rtne:
            g.rounding = rounding_kind::nearest;
            break;
        case rounding::away:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = g.threshold_negative = half_or_more;
            break;
        case rounding::ties_to_zero:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = g.threshold_negative = 0.5f;
            break;
        case rounding::zero:
            g.rounding = rounding_kind::threshold;
            break;
        case rounding::up:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = 0.0f;
            break;
        case rounding::down:
            g.rounding = rounding_kind::threshold;
            g.threshold_negative = 0.0f;
            break;
        case rounding::stochastic:
            g.rounding = rounding_kind::stochastic;
            g.random_mask = ~0u << (32 - p.mode.random_bits);
            break;
        default:  // takes() says no
            break;
    }
    const scale::rule_step s = scale::step_of(p.rule, p.facts);
    g.rule_step = scale::one_binade - s.from;
    g.rule_base = s.base;
    // Errors of the nearest roundings are exact, wherever they lie; others have 24 bits from 2^-84
    // up, in units of the scale, and should stay normal in units of x.
    g.least_code = g.rounding == rounding_kind::nearest ? 1 : 85;
    return g;
}

block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details) {
    if (!takes(p) || details.asked.wanted == detail::stats) {
        return scalar::quantize(p, run, details);
    }
    static thread_local workspace space;
    details.fit(run);
    const bool with_parts = details.asked.parts;
    space.fit(run, with_parts);
    std::uint8_t* const codes = details.results.codes;
    const element_grid grid = grid_of(p);
    block_extremes extremes{run.amax.data(), run.amax.data(), run.amin.data(), run.nonzero.data()};
    if (p.has_offset) {
        const centred_blocks& c = space.centred;
        k.centre(run, p.range, space.centred);
        extremes = {c.ruled.data(), c.amax.data(), c.amin.data(), c.nonzero.data()};
    }
    k.scale(grid, extremes, run.blocks, space.scales);
    const bool all_fast = !p.has_offset && space.scales.slow_blocks == 0;
    space.sums.with_x2 = with_parts || !(all_fast && run.has_x2 && codes == nullptr);
    if (grid.rounding == rounding_kind::stochastic) k.draw(run, p.seed);
    grid_counts counts;
    if (p.has_offset) {
        k.centred_elements(grid, run, space.centred, space.scales, codes, space.sums, counts);
    } else {
        k.elements(grid, run, space.scales, codes, space.sums, counts);
    }
    if (codes != nullptr) {
        keep_details(run, extremes, p.has_offset ? &space.centred : nullptr, space.scales,
                     details.results);
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
    if (with_parts) {
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

#include "libmx/base/simd/kernel_tables.inc"

}  // namespace mx::codec::simd
