// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/totals.hpp"

#include <algorithm>

namespace mx::metrics {
namespace {

void add(element_counts& to, const element_counts& from) {
    to.elements += from.elements;
    to.nan += from.nan;
    to.inf += from.inf;
    to.poisoned += from.poisoned;
    to.nonzero += from.nonzero;
    to.overflow += from.overflow;
    to.clamp += from.clamp;
    to.top_code += from.top_code;
    to.underflow += from.underflow;
    to.subnormal += from.subnormal;
}

void add(block_tallies& to, const block_tallies& from) {
    to.blocks += from.blocks;
    to.zero += from.zero;
    to.eligible += from.eligible;
    to.collapsed += from.collapsed;
    to.saturated += from.saturated;
    to.dead += from.dead;
}

template <std::size_t N>
double pairwise(std::array<double, N>& lane) {
    for (std::size_t distance = N / 2; distance > 0; distance /= 2) {
        for (std::size_t i = 0; i < distance; ++i) lane[i] += lane[i + distance];
    }
    return lane[0];
}

}  // namespace

void totals::merge(const totals& other) {
    add(count, other.count);
    add(block, other.block);
    sum.error2.merge(other.sum.error2);
    sum.x2.merge(other.sum.x2);
    sum.xd.merge(other.sum.xd);
    sum.d2.merge(other.sum.d2);
    sum.error.merge(other.sum.error);
    max_error = std::max(max_error, other.max_error);
}

void segment::add(const block::block_stats& b) {
    const block::block_counts& c = b.count;
    const element_counts counts{c.elements, c.nan,   c.inf,      c.poisoned,  c.nonzero,
                                c.overflow, c.clamp, c.top_code, c.underflow, c.subnormal};
    metrics::add(count_, counts);
    const auto one = [](bool flag) { return std::uint64_t{flag}; };
    metrics::add(block_, {1, one(b.is.zero), one(b.is.eligible), one(b.is.collapsed),
                          one(b.is.saturated), one(b.is.dead)});
    const std::size_t i = next_++ % lanes;
    lane_.error2[i] += b.sum.error2;
    lane_.x2[i] += b.sum.x2;
    lane_.xd[i] += b.sum.xd;
    lane_.d2[i] += b.sum.d2;
    lane_.error[i] += b.sum.error;
    max_error_ = std::max(max_error_, b.sum.max_error);
}

void segment::flush(totals& t) {
    metrics::add(t.count, count_);
    metrics::add(t.block, block_);
    t.sum.error2.add(pairwise(lane_.error2));
    t.sum.x2.add(pairwise(lane_.x2));
    t.sum.xd.add(pairwise(lane_.xd));
    t.sum.d2.add(pairwise(lane_.d2));
    t.sum.error.add(pairwise(lane_.error));
    t.max_error = std::max(t.max_error, max_error_);
    *this = segment{};
}

}  // namespace mx::metrics
