// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/operands.hpp"

#include <algorithm>
#include <utility>

namespace mx::policy {
namespace {

using kind = codec::axis_choice::kind;

bool divides(int block, std::uint64_t extent) {
    return extent > 0 && extent % static_cast<std::uint64_t>(block) == 0;
}

}  // namespace

int long_axes(const std::vector<std::uint64_t>& shape) {
    return static_cast<int>(
        std::count_if(shape.begin(), shape.end(), [](std::uint64_t n) { return n != 1; }));
}

bool is_floating(std::string_view dtype) {
    return dtype != "BOOL" && dtype.substr(0, 1) != "I" && dtype.substr(0, 1) != "U";
}

bool holds_whole_blocks(const std::vector<std::uint64_t>& shape, const codec::recipe& r) {
    if (shape.empty()) return false;
    const auto axes = static_cast<int>(shape.size());
    const auto extent = [&](int axis) {
        return axis < 0 ? std::uint64_t{1} : shape[static_cast<std::size_t>(axis)];
    };
    switch (r.axis.what) {
        case kind::last:
            return divides(r.block.cols, extent(axes - 1)) &&
                   divides(r.block.rows, extent(axes - 2));
        case kind::index: {
            const int axis = r.axis.value < 0 ? axes + r.axis.value : r.axis.value;
            return axis >= 0 && axis < axes && divides(r.block.cols * r.block.rows, extent(axis));
        }
        case kind::flat: {
            std::uint64_t sums = 1;
            bool behind = false;
            for (const std::uint64_t n : shape) {
                if (behind) sums *= n;
                behind = behind || n != 1;
            }
            return divides(r.block.cols * r.block.rows, sums);
        }
    }
    return false;
}

std::optional<codec::recipe> along_whole_blocks(const std::vector<std::uint64_t>& shape,
                                                const codec::recipe& r) {
    codec::recipe along = r;
    if (holds_whole_blocks(shape, along)) return along;
    if (r.block.rows != 1) return {};
    along.axis = {kind::flat, 0};
    const auto block = static_cast<std::uint64_t>(r.block.cols);
    if (long_axes(shape) > 2 && shape.back() < block && holds_whole_blocks(shape, along))
        return along;
    return {};
}

std::string recipe_key(codec::recipe r) {
    r.axis = {};
    if (r.block.cols == 1) {  // another way to say axis=-2
        r.block = {1, r.block.rows};
        if (r.outer.what == codec::outer_choice::kind::column) {
            r.outer.what = codec::outer_choice::kind::row;
        }
        std::swap(r.outer.rows, r.outer.cols);
    }
    r.seed = 0;
    r.rotate.seed = 0;
    return codec::to_string(r);
}

}  // namespace mx::policy
