// SPDX-License-Identifier: Apache-2.0
// What the elements of a block add to its sums, chunk by chunk, and to its counts and verdicts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "libmx/base/macros.hpp"
#include "libmx/block/block_stats.hpp"
#include "libmx/format/encode.hpp"

namespace mx::codec {

// The shape of a block's sums, fixed by position alone (docs/design/determinism.md).
//
// Positions of a block, in row-major order, are cut into chunks of 32; the last one is filled with
// zeros. Inside a chunk terms are added pairwise at distance 16, 8, 4, 2, 1. Chunk sums are added
// in order, in double. A vector unit adds whole registers at the first steps and many blocks at
// once at the last ones, and gets the same bits.

inline constexpr int chunk_size = 32;

/// Adds the 32 terms of a chunk pairwise; destroys `term`.
template <typename T>
MX_HD T sum_chunk(T* term) {
    for (int distance = chunk_size / 2; distance > 0; distance /= 2) {
        for (int i = 0; i < distance; ++i) term[i] += term[i + distance];
    }
    return term[0];
}

/// What one element adds to the sums of its block. T is float in units of the scale, double in
/// units of x.
template <typename T>
struct element_term {
    T x, d, e;  ///< e: d - x

    MX_HD T error2() const { return e * e; }
    MX_HD T x2() const { return x * x; }
    MX_HD T xd() const { return x * d; }
    MX_HD T d2() const { return d * d; }
    /// Exact in double also where a directed rounding leaves more than a float's bits.
    MX_HD double error() const {
        return std::is_same_v<T, float> ? static_cast<double>(d) - static_cast<double>(x)
                                        : static_cast<double>(e);
    }
};

/// T is float in units of the scale, double in units of x. Terms that are not set count as zero.
template <typename T>
class chunk_terms {
  public:
    T x[chunk_size] = {};
    T d[chunk_size] = {};
    T e[chunk_size] = {};
    block::error_part part[chunk_size] = {};

    MX_HD void set(int i, T x_i, T d_i, T e_i, block::error_part part_i) {
        x[i] = x_i;
        d[i] = d_i;
        e[i] = e_i;
        part[i] = part_i;
    }
    MX_HD void set(int i, const element_term<T>& t, block::error_part part_i) {
        set(i, t.x, t.d, t.e, part_i);
    }
    MX_HD element_term<T> term(int i) const { return {x[i], d[i], e[i]}; }
    MX_HD void add_to(block::block_sums& sum) const {
        T error2[chunk_size], x2[chunk_size], xd[chunk_size], d2[chunk_size];
        double error[chunk_size];
        T max_error = 0;
        for (int i = 0; i < chunk_size; ++i) {
            error2[i] = term(i).error2();
            x2[i] = term(i).x2();
            xd[i] = term(i).xd();
            d2[i] = term(i).d2();
            error[i] = term(i).error();
            max_error = std::max(max_error, std::abs(term(i).e));
        }
        sum.error2 += static_cast<double>(sum_chunk(error2));
        sum.x2 += static_cast<double>(sum_chunk(x2));
        sum.xd += static_cast<double>(sum_chunk(xd));
        sum.d2 += static_cast<double>(sum_chunk(d2));
        sum.error += sum_chunk(error);
        sum.max_error = std::max(sum.max_error, static_cast<double>(max_error));
    }
    /// The squared errors once more, each to its part; those of other parts count as zero.
    MX_HD void add_to(block::block_parts& parts) const {
        parts.clamp_error2 += error2_of(block::error_part::clamp);
        parts.underflow_error2 += error2_of(block::error_part::underflow);
        parts.grid_error2 += error2_of(block::error_part::grid);
    }

  private:
    MX_HD double error2_of(block::error_part of) const {
        T error2[chunk_size];
        for (int i = 0; i < chunk_size; ++i) error2[i] = part[i] == of ? term(i).error2() : T{0};
        return static_cast<double>(sum_chunk(error2));
    }
};

/// Adds a chunk to the sums of its block.
template <typename T>
MX_HD_CALL inline void add_chunk(const chunk_terms<T>& terms, bool parts, block::block_sums& sum,
                                 block::block_parts& part) {
    terms.add_to(sum);
    if (parts) terms.add_to(part);
}

// What the elements of a block add to its counts and verdicts (docs: the definitions of the rates).

/// Counts over the finite elements of one block.
class element_tally {
  public:
    /// Adds an element: `exact` is x / S as rounded exactly, which decides overflow and clamping,
    /// `magnitude` the magnitude code the element got. Tells the part its error belongs to.
    MX_HD block::error_part add(const format::element_params& f, bool nonzero,
                                const format::encoded& exact, std::uint32_t magnitude) {
        if (!nonzero) return block::error_part::grid;
        const std::uint32_t limit = f.limit(exact.negative);
        ++nonzero_;
        least_ = std::min(least_, magnitude);
        most_ = std::max(most_, magnitude);
        overflow_ += static_cast<std::uint32_t>(exact.beyond_max);
        const bool clamped = exact.unbounded > limit;
        clamp_ += static_cast<std::uint32_t>(clamped);
        top_code_ += static_cast<std::uint32_t>(magnitude == limit);
        underflow_ += static_cast<std::uint32_t>(magnitude == 0);
        // Zero wraps to the top, so one comparison asks for 0 < magnitude < smallest normal.
        subnormal_ += static_cast<std::uint32_t>(magnitude - 1u < f.smallest_normal - 1u);
        if (clamped) return block::error_part::clamp;
        return magnitude == 0 ? block::error_part::underflow : block::error_part::grid;
    }

    /// Writes the counts and the verdicts that follow from them.
    MX_HD void finish(const format::element_params& f, block::block_stats& out) const {
        block::block_counts& c = out.count;
        c.nonzero = nonzero_;
        c.overflow = overflow_;
        c.clamp = clamp_;
        c.top_code = top_code_;
        c.underflow = underflow_;
        c.subnormal = f.smallest_normal == 0 ? 0 : subnormal_;
        out.is.eligible = nonzero_ >= 2;
        out.is.collapsed = out.is.eligible && least_ == most_ && least_ != 0;
        out.is.saturated = out.is.eligible && top_code_ == nonzero_;
        out.is.dead = out.is.eligible && underflow_ == nonzero_;
    }

    /// The counts of both, over other elements of the same block.
    MX_HD void merge(const element_tally& other) {
        nonzero_ += other.nonzero_;
        overflow_ += other.overflow_;
        clamp_ += other.clamp_;
        top_code_ += other.top_code_;
        underflow_ += other.underflow_;
        subnormal_ += other.subnormal_;
        least_ = std::min(least_, other.least_);
        most_ = std::max(most_, other.most_);
    }

  private:
    std::uint32_t nonzero_ = 0, overflow_ = 0, clamp_ = 0, top_code_ = 0, underflow_ = 0;
    std::uint32_t subnormal_ = 0, least_ = ~0u, most_ = 0;
};

}  // namespace mx::codec
