// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/geometry.hpp"

#include <fmt/format.h>

#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/panels.hpp"

namespace mx::engine {
namespace {

using codec::axis_choice;

std::uint64_t product(const tensor::shape& s, std::size_t from, std::size_t to) {
    std::uint64_t p = 1;
    for (std::size_t i = from; i < to; ++i) p *= s[i];
    return p;
}

std::uint64_t blocks_along(std::uint64_t extent, int block) {
    const auto b = static_cast<std::uint64_t>(block);
    return (extent + b - 1) / b;
}

// Blocks of `rows` x `cols` with their columns along `sums`. `merged`: 1-D blocks, whose matrices
// need not end with the axis before.
geometry along(const tensor::shape& s, axis_range sums, const codec::block_shape& of, bool merged) {
    const auto rows = static_cast<std::uint64_t>(of.rows);
    const auto cols = static_cast<std::uint64_t>(of.cols);
    const std::uint64_t before = product(s, 0, sums.first);
    const std::uint64_t sum = product(s, sums.first, sums.last);
    const std::uint64_t behind = product(s, sums.last, s.size());
    const auto at = [&s](std::size_t i) { return s.begin() + static_cast<std::ptrdiff_t>(i); };
    geometry g;
    g.grid_shape.assign(s.begin(), at(sums.first));
    if (!s.empty()) g.grid_shape.push_back(blocks_along(sum, of.cols));
    if (behind == 1) {
        const std::uint64_t above = sums.first == 0 ? 1 : s[sums.first - 1];
        g.grid = merged ? block::grid{{1, before, sum}, 1, cols}
                        : block::grid{
                              {product(s, 0, sums.first - (sums.first == 0 ? 0 : 1)), above, sum},
                              rows,
                              cols};
        if (sums.first > 0) g.grid_shape[sums.first - 1] = blocks_along(above, of.rows);
        g.grid_shape.insert(g.grid_shape.end(), at(sums.last), s.end());
        return g;
    }
    g.down = true;
    g.grid = {{before, sum, behind}, cols, rows};
    if (of.rows == 1) {
        g.grid_shape.insert(g.grid_shape.end(), at(sums.last), s.end());
    } else {
        g.grid_shape.push_back(blocks_along(behind, of.rows));
    }
    return g;
}

}  // namespace

namespace {

// Whole rows, columns or tiles are kept in memory if their blocks depend on one another.
constexpr std::uint64_t largest_area = std::uint64_t{1} << 24;
// Whole blocks and whole rotated groups are kept together.
constexpr std::uint64_t largest_joint = std::uint64_t{1} << 24;

std::optional<geometry> in_whole_rows(geometry g, std::string& reason) {
    if (g.grid.block_rows != 1) {
        reason = "its dialect raises exponents along rows of blocks along the last axis";
        return std::nullopt;
    }
    if (g.grid.over.cols > largest_area) {
        reason = fmt::format("its dialect looks at whole rows, of at most {} elements here",
                             largest_area);
        return std::nullopt;
    }
    g.grid.whole_rows = true;
    return g;
}

// Areas with an outer scale each. A tensor of rank 0 or 1 counts as one row.
std::optional<geometry> in_areas(geometry g, const tensor::shape& shape, axis_range sums,
                                 const codec::recipe& r, std::string& reason) {
    const block::grid& grid = g.grid;
    if (!lay_areas(g.grid, r, reason, g.down)) return std::nullopt;
    g.area_shape = {grid.area_rows(), grid.area_cols()};
    if (r.axis.what == axis_choice::kind::flat || shape.size() < 2) return g;
    // The matrices of the grid lie behind these axes. Rows of several matrices can be merged.
    const std::size_t leading = g.down || sums.first == 0 ? sums.first : sums.first - 1;
    const bool rows = !g.down && sums.first > 0 && grid.outer_rows == 1;
    g.area_shape.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(leading));
    g.area_shape.push_back(rows ? shape[leading] : grid.area_rows());
    g.area_shape.push_back(grid.area_cols());
    return g;
}

// Transforms run along the block axis; of tiles, along the axes that a product sums over.
std::optional<geometry> with_joint(geometry g, const codec::recipe& r, std::string& reason) {
    const transform::rotation& how = r.rotate;
    if (how.what == transform::kind::matrix) transform::load_matrix(how);
    const bool tile = r.block.rows != 1 && r.block.cols != 1;
    const bool by_rows = tile ? g.down : g.grid.block_cols == 1;
    (by_rows ? g.grid.joint_rows : g.grid.joint_cols) = static_cast<std::uint64_t>(how.size);
    if (panel_plan(g.grid.over, std::span(&g.grid, 1)).unit_elements() > largest_joint) {
        reason = fmt::format(
            "blocks and the groups of its transform come out even only every {} elements or more; "
            "use blocks that are a power of two",
            largest_joint);
        return std::nullopt;
    }
    return g;
}

// The axes that blocks lie along: `sums`, or those that the recipe names; none if there are none.
std::optional<axis_range> axes_of(const tensor::shape& shape, axis_range sums,
                                  const codec::recipe& r, std::string& reason) {
    if (r.axis.what != axis_choice::kind::index) return sums;
    if (r.axis.value == -1) return last_axis(shape);
    const auto rank = static_cast<int>(shape.size());
    const int axis = r.axis.value < 0 ? r.axis.value + rank : r.axis.value;
    if (axis >= 0 && axis < rank) {
        return axis_range{static_cast<std::size_t>(axis), static_cast<std::size_t>(axis) + 1};
    }
    reason = fmt::format("it has {} ax{}s, the recipe needs axis {}", rank, rank == 1 ? "i" : "e",
                         r.axis.value);
    return std::nullopt;
}

geometry lay_out_blocks(const tensor::shape& shape, axis_range along_axes, const codec::recipe& r) {
    if (r.axis.what == axis_choice::kind::flat) {
        const std::uint64_t all = product(shape, 0, shape.size());
        return geometry{{{1, 1, all}, 1, static_cast<std::uint64_t>(r.block.cols)},
                        {blocks_along(all, r.block.cols)}};
    }
    // Tiles of 1xN blocks do not extend across matrices either.
    const bool merged = r.block.rows == 1 && r.outer.what != codec::outer_choice::kind::tile;
    return along(shape, along_axes, r.block, merged);
}

}  // namespace

axis_range last_axis(const tensor::shape& shape) {
    return {shape.empty() ? 0 : shape.size() - 1, shape.size()};
}

bool lay_areas(block::grid& g, const codec::recipe& r, std::string& reason, bool down) {
    using kind = codec::outer_choice::kind;
    const bool rows = r.outer.what == (down ? kind::column : kind::row);
    g.outer_rows = rows ? 1 : std::max<std::uint64_t>(1, g.over.rows);
    g.outer_cols = rows ? std::max<std::uint64_t>(1, g.over.cols) : 1;
    if (r.outer.what == kind::tile) {
        g.outer_rows = static_cast<std::uint64_t>(down ? r.outer.cols : r.outer.rows);
        g.outer_cols = static_cast<std::uint64_t>(down ? r.outer.rows : r.outer.cols);
    }
    const std::uint64_t area =
        std::min(g.outer_rows, g.over.rows) * std::min(g.outer_cols, g.over.cols);
    if (area <= largest_area) return true;
    reason = fmt::format("a {} of it has {} elements; at most {} share an outer scale here",
                         codec::area_word(r), area, largest_area);
    return false;
}

std::optional<geometry> lay_out(const tensor::shape& shape, axis_range sums, const codec::recipe& r,
                                std::string& reason) {
    const std::optional<axis_range> axes = axes_of(shape, sums, r, reason);
    if (!axes) return std::nullopt;
    std::optional<geometry> g = lay_out_blocks(shape, *axes, r);
    if (codec::bumps_positions(r)) g = in_whole_rows(*g, reason);
    if (g && codec::has_outer_areas(r)) g = in_areas(*g, shape, *axes, r, reason);
    if (g && r.rotate.what != transform::kind::none) g = with_joint(*g, r, reason);
    return g;
}

std::optional<geometry> lay_out(const tensor::shape& shape, const codec::recipe& r,
                                std::string& reason) {
    return lay_out(shape, last_axis(shape), r, reason);
}

std::optional<geometry> lay_out(const io::tensor_info& info, const codec::recipe& r,
                                std::string& reason) {
    return lay_out(info.shape, axes_along_sums(info), r, reason);
}

}  // namespace mx::engine
