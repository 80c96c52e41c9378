// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/totals.hpp"

#include <algorithm>

namespace mx::metrics {

void totals::add(const block::segment_stats& s) {
    count += s.count;
    block += s.block;
    block::each_sum([](base::exact_sum& to, double v) { to.add(v); }, sum, s.sum);
    part.clamp.add(s.part.clamp_error2);
    part.underflow.add(s.part.underflow_error2);
    part.grid.add(s.part.grid_error2);
    max_error = std::max(max_error, s.sum.max_error);
    max_x = std::max(max_x, s.counted_max);
}

void totals::add_outer(float scale) {
    least_outer = std::min(least_outer, scale);
    largest_outer = std::max(largest_outer, scale);
}

void totals::merge(const totals& other) {
    count += other.count;
    block += other.block;
    block::each_sum([](base::exact_sum& to, const base::exact_sum& s) { to.merge(s); }, sum,
                    other.sum);
    part.clamp.merge(other.part.clamp);
    part.underflow.merge(other.part.underflow);
    part.grid.merge(other.part.grid);
    max_error = std::max(max_error, other.max_error);
    max_x = std::max(max_x, other.max_x);
    least_outer = std::min(least_outer, other.least_outer);
    largest_outer = std::max(largest_outer, other.largest_outer);
}

void totals::exchange(base::tally_text& with) {
    const auto add = [&](auto& figure) { with.add(figure); };
    block::each_count(add, count);
    with.add(count.dequant_overflow);
    with.add(block.blocks);
    block::each_flag(add, block);
    block::each_sum(add, sum);
    with.add(part.clamp);
    with.add(part.underflow);
    with.add(part.grid);
    with.raise(max_error);
    with.raise(max_x);
}

}  // namespace mx::metrics
