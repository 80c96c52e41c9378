// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/totals.hpp"

#include <algorithm>

namespace mx::metrics {

void totals::add(const block::segment_stats& s) {
    count += s.count;
    block += s.block;
    sum.error2.add(s.sum.error2);
    sum.x2.add(s.sum.x2);
    sum.xd.add(s.sum.xd);
    sum.d2.add(s.sum.d2);
    sum.error.add(s.sum.error);
    part.clamp.add(s.part.clamp_error2);
    part.underflow.add(s.part.underflow_error2);
    part.grid.add(s.part.grid_error2);
    max_error = std::max(max_error, s.sum.max_error);
    max_x = std::max(max_x, s.counted_max);
}

void totals::merge(const totals& other) {
    count += other.count;
    block += other.block;
    sum.error2.merge(other.sum.error2);
    sum.x2.merge(other.sum.x2);
    sum.xd.merge(other.sum.xd);
    sum.d2.merge(other.sum.d2);
    sum.error.merge(other.sum.error);
    part.clamp.merge(other.part.clamp);
    part.underflow.merge(other.part.underflow);
    part.grid.merge(other.part.grid);
    max_error = std::max(max_error, other.max_error);
    max_x = std::max(max_x, other.max_x);
}

}  // namespace mx::metrics
