// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/driver_batch.hpp"

#include <algorithm>

namespace mx::quantize {
namespace {

template <typename T>
void copy_in(const T* from, std::size_t count, std::vector<T>& to, std::size_t at) {
    std::copy_n(from, count, to.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

void driver_batch::run(const value_rectangle& values, std::span<const batch_segment> segments,
                       std::span<const batch_recipe> recipes) {
    recipes_ = recipes.size();
    stride_ = segments.empty() ? 0 : block_stride(segments.front().place.block_size());
    first_blocks_.assign(1, 0);
    for (const batch_segment& s : segments) {
        first_blocks_.push_back(first_blocks_.back() + s.place.blocks());
    }
    stats_.resize(segments.size() * recipes.size());
    if (kept_.size() < recipes.size()) kept_.resize(recipes.size());
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        kept_[r].wanted = recipes[r].wanted;
        kept_[r].fit(first_blocks_.back(), stride_);
    }
    for (std::size_t s = 0; s < segments.size(); ++s) {
        stop_if_cancelled();
        const batch_segment& segment = segments[s];
        driver_->load(values.values.from(segment.row * values.values.stride + segment.col),
                      segment.place, run_);
        for (std::size_t r = 0; r < recipes.size(); ++r) {
            details_.wanted = recipes[r].wanted;
            details_.parts = recipes[r].parts;
            stats_[s * recipes_ + r] = driver_->quantize(*recipes[r].params, run_, details_);
            kept_[r].keep(first_blocks_[s], view_of(run_, details_));
        }
    }
}

batch_result driver_batch::result(std::size_t segment, std::size_t recipe) const {
    const std::size_t first = first_blocks_[segment];
    return {&stats_[segment * recipes_ + recipe],
            kept_[recipe].view(first, first_blocks_[segment + 1] - first, stride_)};
}

void driver_batch::kept_details::fit(std::size_t blocks, std::size_t stride) {
    if (wanted == detail::none) return;
    codes.resize(blocks * stride);
    scale_code.resize(blocks);
    offset.resize(blocks);
    amax.resize(blocks);
    x_max.resize(blocks);
    x_min.resize(blocks);
    if (wanted == detail::stats) stats.resize(blocks);
}

void driver_batch::kept_details::keep(std::size_t first, const details_view& from) {
    if (wanted == detail::none) return;
    copy_in(from.codes, from.blocks * from.stride, codes, first * from.stride);
    copy_in(from.scale_code, from.blocks, scale_code, first);
    copy_in(from.offset, from.blocks, offset, first);
    copy_in(from.amax, from.blocks, amax, first);
    copy_in(from.x_max, from.blocks, x_max, first);
    copy_in(from.x_min, from.blocks, x_min, first);
    if (wanted == detail::stats) copy_in(from.stats, from.blocks, stats, first);
}

details_view driver_batch::kept_details::view(std::size_t first, std::size_t blocks,
                                              std::size_t stride) const {
    details_view v;
    v.blocks = blocks;
    v.stride = stride;
    if (wanted == detail::none) return v;
    v.codes = codes.data() + first * stride;
    v.scale_code = scale_code.data() + first;
    v.offset = offset.data() + first;
    v.amax = amax.data() + first;
    v.x_max = x_max.data() + first;
    v.x_min = x_min.data() + first;
    if (wanted == detail::stats) v.stats = stats.data() + first;
    return v;
}

}  // namespace mx::quantize
