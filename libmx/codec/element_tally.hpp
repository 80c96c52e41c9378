// SPDX-License-Identifier: Apache-2.0
// Adds the elements of a block to its counts and verdicts (docs: the definitions of the rates).
#pragma once

#include <algorithm>
#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/block/block_stats.hpp"
#include "libmx/format/encode.hpp"

namespace mx::codec {

/// Counts over the finite elements of one block.
class element_tally {
  public:
    /// Adds an element: `exact` is x / S as rounded exactly, which decides overflow and clamping,
    /// `magnitude` the magnitude code the element got, `gone` whether x is decoded as zero and is
    /// not. Tells the part its error belongs to.
    MX_HD block::error_part add(const format::element_params& f, bool nonzero,
                                const format::encoded& exact, std::uint32_t magnitude, bool gone) {
        if (!nonzero) return block::error_part::grid;
        const std::uint32_t limit = f.limit(exact.negative);
        ++nonzero_;
        least_ = std::min(least_, magnitude);
        most_ = std::max(most_, magnitude);
        overflow_ += static_cast<std::uint32_t>(exact.beyond_max);
        const bool clamped = exact.unbounded > limit;
        clamp_ += static_cast<std::uint32_t>(clamped);
        top_code_ += static_cast<std::uint32_t>(magnitude == limit);
        underflow_ += static_cast<std::uint32_t>(gone);
        // Zero wraps to the top, so one comparison asks for 0 < magnitude < smallest normal.
        subnormal_ += static_cast<std::uint32_t>(magnitude - 1u < f.smallest_normal - 1u);
        if (clamped) return block::error_part::clamp;
        return gone ? block::error_part::underflow : block::error_part::grid;
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
        out.is.dead = out.is.eligible && most_ == 0;
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
