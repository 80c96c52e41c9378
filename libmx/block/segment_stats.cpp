// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/segment_stats.hpp"

#include <algorithm>

namespace mx::block {
namespace {

double pairwise(segment_lanes::lanes lane) {
    for (std::size_t distance = lane.size() / 2; distance > 0; distance /= 2) {
        for (std::size_t i = 0; i < distance; ++i) lane[i] += lane[i + distance];
    }
    return lane[0];
}

}  // namespace

element_counts& element_counts::operator+=(const element_counts& other) {
    elements += other.elements;
    nan += other.nan;
    inf += other.inf;
    poisoned += other.poisoned;
    nonzero += other.nonzero;
    overflow += other.overflow;
    clamp += other.clamp;
    top_code += other.top_code;
    underflow += other.underflow;
    subnormal += other.subnormal;
    dequant_overflow += other.dequant_overflow;
    return *this;
}

block_tallies& block_tallies::operator+=(const block_tallies& other) {
    blocks += other.blocks;
    zero += other.zero;
    eligible += other.eligible;
    collapsed += other.collapsed;
    saturated += other.saturated;
    dead += other.dead;
    return *this;
}

block_sums segment_lanes::sum() const {
    return {pairwise(error2), pairwise(x2), pairwise(xd), pairwise(d2), pairwise(error), max_error};
}

block_parts part_lanes::sum() const {
    return {pairwise(clamp_error2), pairwise(underflow_error2), pairwise(grid_error2)};
}

void add_counts(segment_stats& to, const block_stats& b) {
    const block_counts& c = b.count;
    to.count += {c.elements, c.nan,      c.inf,       c.poisoned,  c.nonzero,         c.overflow,
                 c.clamp,    c.top_code, c.underflow, c.subnormal, c.dequant_overflow};
    const auto one = [](bool flag) { return std::uint64_t{flag}; };
    to.block += {1,
                 one(b.is.zero),
                 one(b.is.eligible),
                 one(b.is.collapsed),
                 one(b.is.saturated),
                 one(b.is.dead)};
    to.counted_max = std::max(to.counted_max, b.counted_max);
}

}  // namespace mx::block
