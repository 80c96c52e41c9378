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

float* block_details::values_of(const block_params& p, const block_run& run) {
    if (!values || codes_tell_values(p)) return nullptr;
    return dequantized.room_for(run.blocks * run.stride);
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

details_view view_of(const block_params& p, const block_run& run, const block_details& details) {
    details_view v;
    v.blocks = run.blocks;
    v.stride = run.stride;
    if (details.values && !codes_tell_values(p)) v.values = details.dequantized.data();
    if (details.wanted == detail::none) return v;
    v.codes = details.codes.data();
    v.scale_code = details.scale_code.data();
    v.offset = details.offset.data();
    v.amax = details.amax.data();
    v.x_max = details.x_max.data();
    v.x_min = details.x_min.data();
    if (details.wanted == detail::stats) v.stats = details.stats.data();
    return v;
}

}  // namespace mx::quantize
