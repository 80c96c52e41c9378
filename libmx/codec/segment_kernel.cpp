// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/segment_kernel.hpp"

#include "libmx/codec/block_kernel.hpp"

namespace mx::codec {

void block_details::ask(const recipe_request& r) {
    wanted = r.wanted;
    parts = r.parts;
    values = r.values;
}

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

block_results block_details::results(const block_params& p, const block_run& run) const {
    block_results v;
    v.blocks = run.blocks;
    v.stride = run.stride;
    if (values && !codes_tell_values(p)) v.values = dequantized.data();
    if (wanted == detail::none) return v;
    v.codes = codes.data();
    v.scale_code = scale_code.data();
    v.offset = offset.data();
    v.amax = amax.data();
    v.x_max = x_max.data();
    v.x_min = x_min.data();
    if (wanted == detail::stats) v.stats = stats.data();
    return v;
}

}  // namespace mx::codec
