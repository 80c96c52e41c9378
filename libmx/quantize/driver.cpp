// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/driver.hpp"

namespace mx::quantize {

void block_details::fit(const block_run& run) {
    if (wanted == detail::none) return;
    constexpr std::size_t slack = 16 * 32;
    const std::size_t blocks = run.blocks + slack;
    codes.room_for(run.blocks * run.stride + slack);
    scale_code.room_for(blocks);
    offset.room_for(blocks);
    amax.room_for(blocks);
    x_max.room_for(blocks);
    x_min.room_for(blocks);
    if (wanted == detail::stats) stats.room_for(blocks);
}

void block_details::put(std::size_t b, const block::block_stats& s) {
    if (wanted == detail::none) return;
    scale_code.data()[b] = s.scale_code;
    offset.data()[b] = s.offset;
    amax.data()[b] = s.amax;
    x_max.data()[b] = s.x_max;
    x_min.data()[b] = s.x_min;
    if (wanted == detail::stats) stats.data()[b] = s;
}

}  // namespace mx::quantize
