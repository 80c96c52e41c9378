// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/engine/geometry.hpp"

namespace mx::policy {
namespace {

using kind = codec::axis_choice::kind;

engine::axis_range axes_of_blocks(const measured_tensor& t) {
    if (!t.sums_over.any()) return engine::last_axis(t.shape);
    return {static_cast<std::size_t>(t.sums_over.first),
            static_cast<std::size_t>(t.sums_over.last)};
}

bool divides(std::uint64_t block, std::uint64_t extent) {
    return extent > 0 && extent % block == 0;
}

}  // namespace

int long_axes(const std::vector<std::uint64_t>& shape) {
    return static_cast<int>(
        std::count_if(shape.begin(), shape.end(), [](std::uint64_t n) { return n != 1; }));
}

bool is_floating(std::string_view dtype) {
    return dtype != "BOOL" && dtype.substr(0, 1) != "I" && dtype.substr(0, 1) != "U";
}

std::uint64_t summed_extent(const measured_tensor& t) {
    if (t.sums_over.any()) return t.sums_over.extent;
    return t.shape.empty() ? 1 : t.shape.back();
}

bool holds_whole_blocks(const measured_tensor& t, const codec::recipe& r) {
    if (t.shape.empty()) return false;
    if (!codec::has_blocks(r) && codec::bits_per_block(r) == 0) return true;
    if (r.block.cols == codec::max_block_elements) return true;  // FORMAT:scale=channel: a row each
    if (r.axis.what == kind::flat) {
        const auto first =
            std::ranges::find_if(t.shape, [](std::uint64_t extent) { return extent != 1; });
        std::uint64_t sums = 1;
        for (auto at = first; at != t.shape.end(); ++at) sums *= at == first ? 1 : *at;
        return divides(static_cast<std::uint64_t>(r.block.cols), sums);
    }
    codec::recipe blocks = r;  // alone: neither areas nor groups of a transform
    blocks.outer = {};
    blocks.rotate = {};
    std::string reason;
    const auto layout = engine::lay_out(t.shape, axes_of_blocks(t), blocks, reason);
    return layout && divides(layout->grid.block_rows, layout->grid.over.rows) &&
           divides(layout->grid.block_cols, layout->grid.over.cols);
}

std::uint64_t padded_extent(const measured_tensor& t, const codec::recipe& r) {
    const auto block = static_cast<std::uint64_t>(r.block.cols);
    return (summed_extent(t) + block - 1) / block * block;
}

std::string padding_text(const measured_tensor& t, const codec::recipe& r) {
    const std::uint64_t k = summed_extent(t);
    const std::uint64_t padded = padded_extent(t, r);
    if (k == 0 || padded == k) {
        return fmt::format("its rows are no multiple of the {} of a block: pad them", r.block.rows);
    }
    return fmt::format("K = {} is not a multiple of {}; padded to {} it costs {:.1f} % more", k,
                       r.block.cols, padded,
                       100 * static_cast<double>(padded - k) / static_cast<double>(k));
}

codec::recipe without_axis(codec::recipe r) {
    r.axis = {};
    if (r.block.cols == 1) {  // along the other axis
        r.block = {1, r.block.rows};
        if (r.outer.what == codec::outer_choice::kind::column) {
            r.outer.what = codec::outer_choice::kind::row;
        }
        std::swap(r.outer.rows, r.outer.cols);
    }
    r.seed = 0;
    r.rotate.seed = 0;
    return r;
}

std::string recipe_key(const codec::recipe& r) { return codec::to_string(without_axis(r)); }

}  // namespace mx::policy
