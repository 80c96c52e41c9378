// SPDX-License-Identifier: Apache-2.0
// Everything the metrics are finished from: counts, exact sums, and (on request) histograms of one
// tensor under one recipe. Adding and merging are exact, so the result does not depend on how the
// blocks were divided among threads, ranks or devices.
#pragma once

#include <array>
#include <cstdint>

#include "libmx/base/exact_sum.hpp"
#include "libmx/block/block_stats.hpp"

namespace mx::metrics {

struct element_counts {
    std::uint64_t elements, nan, inf, poisoned, nonzero;
    std::uint64_t overflow, clamp, top_code, underflow, subnormal;
};

struct block_tallies {
    std::uint64_t blocks, zero, eligible, collapsed, saturated, dead;
};

/// Sums over finite, unpoisoned elements (see block::block_sums).
struct exact_sums {
    base::exact_sum error2, x2, xd, d2, error;
};

struct histograms;

struct totals {
    element_counts count{};
    block_tallies block{};
    exact_sums sum{};
    double max_error = 0;
    // Facts of the recipe that some metrics need.
    bool has_subnormals = false;
    int element_bits = 0;
    int bits_per_block = 0;  ///< scale and offset bits
    double clamp_from = 0;   ///< block maxima with a mantissa in (clamp_from, clamp_to) overflow;
    double clamp_to = 0;     ///< an empty range when none does
    const histograms* distribution = nullptr;  ///< not owned; set when the metrics are finished

    /// Elements that rates and sums are over.
    std::uint64_t counted() const {
        return count.elements - count.nan - count.inf - count.poisoned;
    }
    void merge(const totals& other);
};

/// Collects the blocks of one segment: a run of blocks fixed by their index in the tensor
/// (block::segmentation). Block sums go to lane (index in segment mod 16) in order; at the end the
/// lanes are added pairwise at distance 8, 4, 2, 1 and the result enters the totals exactly.
class segment {
  public:
    void add(const block::block_stats& b);
    /// Empties the segment into `t`.
    void flush(totals& t);

  private:
    static constexpr std::size_t lanes = 16;
    struct lane_sums {
        std::array<double, lanes> error2{}, x2{}, xd{}, d2{}, error{};
    };
    lane_sums lane_;
    element_counts count_{};
    block_tallies block_{};
    double max_error_ = 0;
    std::size_t next_ = 0;
};

}  // namespace mx::metrics
