// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/totals.hpp"

#include <algorithm>

namespace mx::metrics {

void totals::add(const block::segment_stats& s) {
    count += s.count;
    block += s.block;
    sum.merge(s.sum);
    max_error = std::max(max_error, s.max_error);
    max_x = std::max(max_x, s.counted_max);
}

void totals::add_outer(float scale) {
    least_outer = std::min(least_outer, scale);
    largest_outer = std::max(largest_outer, scale);
}

void totals::merge(const totals& other) {
    count += other.count;
    block += other.block;
    sum.merge(other.sum);
    max_error = std::max(max_error, other.max_error);
    max_x = std::max(max_x, other.max_x);
    least_outer = std::min(least_outer, other.least_outer);
    largest_outer = std::max(largest_outer, other.largest_outer);
}

void totals::serialize(base::archive& with) {
    const auto add = [&](auto& figure) { with.add(figure); };
    block::each_count(add, count);
    with.add(count.dequant_overflow);
    with.add(block.blocks);
    block::each_flag(add, block);
    block::each_exact_sum(add, sum);
    with.raise(max_error);
    with.raise(max_x);
}

}  // namespace mx::metrics
