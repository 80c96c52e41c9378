// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/segment_stats.hpp"

namespace mx::block {
namespace {

double pairwise(segment_lanes::lanes lane) {
    for (std::size_t distance = lane.size() / 2; distance > 0; distance /= 2) {
        for (std::size_t i = 0; i < distance; ++i) lane[i] += lane[i + distance];
    }
    return lane[0];
}

}  // namespace

block_sums segment_lanes::sum() const {
    return {pairwise(error2), pairwise(x2), pairwise(xd), pairwise(d2), pairwise(error), max_error};
}

block_parts part_lanes::sum() const {
    return {pairwise(clamp_error2), pairwise(underflow_error2), pairwise(grid_error2)};
}

}  // namespace mx::block
