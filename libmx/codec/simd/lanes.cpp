// SPDX-License-Identifier: Apache-2.0
// From chunks to the lanes of a segment. One body, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/vectors.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

using float_part = hn::Rebind<float, double_tag>;

HWY_INLINE doubles widened(const float* from) {
    return hn::PromoteTo(double_tag(), hn::LoadU(float_part(), from));
}

// Blocks of one chunk each, whole batches of them, to lanes that stay in registers.
template <class Terms>
HWY_INLINE void add_batches(const float* scale, std::size_t blocks, Terms&& terms, double* lanes) {
    const double_tag d;
    for (std::size_t i = 0; i < batch; i += double_lanes) {
        doubles lane = hn::Load(d, lanes + i);
        for (std::size_t b = i; b < blocks; b += batch) {
            lane = hn::Add(lane, terms(b, widened(scale + b)));
        }
        hn::Store(lane, d, lanes + i);
    }
}

HWY_INLINE void add_squares(const float* scale, std::size_t blocks, const float* sums,
                            double* lanes) {
    add_batches(
        scale, blocks,
        [&](std::size_t b, doubles s)
            HWY_ATTR { return hn::Mul(widened(sums + b), hn::Mul(s, s)); },
        lanes);
}

HWY_INLINE void add_as_they_are(std::size_t blocks, const double* sums, double* lanes) {
    const double_tag d;
    for (std::size_t i = 0; i < batch; i += double_lanes) {
        doubles lane = hn::Load(d, lanes + i);
        for (std::size_t b = i; b < blocks; b += batch) {
            lane = hn::Add(lane, hn::LoadU(d, sums + b));
        }
        hn::Store(lane, d, lanes + i);
    }
}

template <class T>
double in_order(const T* sums, std::size_t count) {
    double sum = 0;
    for (std::size_t c = 0; c < count; ++c) sum += static_cast<double>(sums[c]);
    return sum;
}

// Chunks of a block in order, then the scale.
block::block_sums sums_of(const chunk_sums& sums, std::size_t first, std::size_t count, double s) {
    const auto sum = [&](const auto& of) { return in_order(of.data() + first, count); };
    const double s2 = s * s;
    return {sum(sums.error2) * s2, sum(sums.x2) * s2,   sum(sums.xd) * s2,
            sum(sums.d2) * s2,     sum(sums.error) * s, 0};
}

// Chunks of a block in units of x, in order; the sums side by side, as each waits for itself.
block::block_sums sums_in_x_of(const chunk_sums& sums, std::size_t first, std::size_t count) {
    block::block_sums of{};
    for (std::size_t c = first; c < first + count; ++c) {
        of.error2 += sums.in_x_error2.data()[c];
        of.x2 += sums.in_x_x2.data()[c];
        of.xd += sums.in_x_xd.data()[c];
        of.d2 += sums.in_x_d2.data()[c];
        of.error += sums.error.data()[c];
    }
    return of;
}

// Parts of the squared error, likewise.
block::block_parts parts_of(const chunk_sums& sums, std::size_t first, std::size_t count,
                            double s) {
    const double s2 = s * s;
    return {in_order(sums.clamp_error2.data() + first, count) * s2,
            in_order(sums.underflow_error2.data() + first, count) * s2,
            in_order(sums.grid_error2.data() + first, count) * s2};
}
block::block_parts parts_in_x_of(const chunk_sums& sums, std::size_t first, std::size_t count) {
    return {in_order(sums.in_x_clamp.data() + first, count),
            in_order(sums.in_x_underflow.data() + first, count),
            in_order(sums.in_x_grid.data() + first, count)};
}

}  // namespace

HWY_ATTR void add_blocks(const block_run& run, bool in_x, const block_scales& scales,
                         const chunk_sums& sums, const block::block_sums* slow,
                         block::segment_lanes& lanes) {
    static_assert(batch == block::segment_lanes::count);
    const std::size_t per_block = run.stride < 32 ? 1 : run.stride / 32;
    const std::uint8_t* const is_slow = scales.slow.data();
    std::size_t done = 0;
    if (per_block == 1 && !in_x && scales.slow_blocks == 0) {
        done = run.blocks / batch * batch;
        const float* const scale = scales.scale.data();
        add_squares(scale, done, sums.error2.data(), lanes.error2.data());
        if (sums.with_x2) add_squares(scale, done, sums.x2.data(), lanes.x2.data());
        add_squares(scale, done, sums.xd.data(), lanes.xd.data());
        add_squares(scale, done, sums.d2.data(), lanes.d2.data());
        const double* const error = sums.error.data();
        add_batches(
            scale, done,
            [&](std::size_t b, doubles s)
                HWY_ATTR { return hn::Mul(hn::LoadU(double_tag(), error + b), s); },
            lanes.error.data());
    } else if (per_block == 1 && scales.slow_blocks == 0) {
        done = run.blocks / batch * batch;
        add_as_they_are(done, sums.in_x_error2.data(), lanes.error2.data());
        add_as_they_are(done, sums.in_x_x2.data(), lanes.x2.data());
        add_as_they_are(done, sums.in_x_xd.data(), lanes.xd.data());
        add_as_they_are(done, sums.in_x_d2.data(), lanes.d2.data());
        add_as_they_are(done, sums.error.data(), lanes.error.data());
    }
    for (std::size_t b = done; b < run.blocks; ++b) {
        if (is_slow[b] != 0) {
            lanes.add(b % batch, *slow++);
        } else if (in_x) {
            lanes.add(b % batch, sums_in_x_of(sums, b * per_block, per_block));
        } else {
            const auto s = static_cast<double>(scales.scale.data()[b]);
            lanes.add(b % batch, sums_of(sums, b * per_block, per_block, s));
        }
    }
}

HWY_ATTR void add_parts(const block_run& run, bool in_x, const block_scales& scales,
                        const chunk_sums& sums, const block::block_parts* slow,
                        block::part_lanes& lanes) {
    const std::size_t per_block = run.stride < 32 ? 1 : run.stride / 32;
    std::size_t done = 0;
    if (per_block == 1 && !in_x && scales.slow_blocks == 0) {
        done = run.blocks / batch * batch;
        const float* const scale = scales.scale.data();
        add_squares(scale, done, sums.clamp_error2.data(), lanes.clamp_error2.data());
        add_squares(scale, done, sums.underflow_error2.data(), lanes.underflow_error2.data());
        add_squares(scale, done, sums.grid_error2.data(), lanes.grid_error2.data());
    }
    for (std::size_t b = done; b < run.blocks; ++b) {
        if (scales.slow.data()[b] != 0) {
            lanes.add(b % batch, *slow++);
        } else if (in_x) {
            lanes.add(b % batch, parts_in_x_of(sums, b * per_block, per_block));
        } else {
            const auto s = static_cast<double>(scales.scale.data()[b]);
            lanes.add(b % batch, parts_of(sums, b * per_block, per_block, s));
        }
    }
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
