// SPDX-License-Identifier: Apache-2.0
// The inputs of all metrics: counts, exact sums, and (if requested) histograms of one tensor under
// one recipe. Adding and merging are exact, so the result does not depend on how the blocks were
// divided among threads, ranks or devices.
#pragma once

#include <cstdint>
#include <limits>

#include "libmx/base/archive.hpp"
#include "libmx/block/segment_stats.hpp"

namespace mx::metrics {

using block::block_tallies;
using block::element_counts;

struct histograms;

struct totals {
    element_counts count{};
    block_tallies block{};
    block::exact_totals sum;
    double max_error = 0;
    std::uint32_t max_x = 0;  ///< float32 bits of max |x|
    // The smallest and the largest of several outer scales; Inf and 0 if there are none.
    float least_outer = std::numeric_limits<float>::infinity();
    float largest_outer = 0;
    /// Standard deviation of x if requested, else NaN.
    double deviation = std::numeric_limits<double>::quiet_NaN();
    // Properties of the recipe that some metrics need.
    bool has_blocks = true;
    bool has_subnormals = false;
    bool foreign = false;  ///< of a dialect other than ocp
    int element_bits = 0;
    int bits_per_block = 0;  ///< scale and offset bits
    double clamp_from = 0;   ///< block maxima with a mantissa in (clamp_from, clamp_to) overflow;
    double clamp_to = 0;     ///< an empty range when none does
    const histograms* distribution = nullptr;  ///< not owned; set when the metrics are finished

    /// The number of elements that rates and sums are over.
    std::uint64_t counted() const {
        return count.elements - count.nan - count.inf - count.poisoned;
    }
    /// Adds a segment.
    void add(const block::segment_stats& s);
    /// Adds the outer scale of a row.
    void add_outer(float scale);
    void merge(const totals& other);
    /// Returns what merge() adds, without histograms.
    void serialize(base::archive& with);
};

}  // namespace mx::metrics
