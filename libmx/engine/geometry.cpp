// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/geometry.hpp"

#include <fmt/format.h>

#include "libmx/codec/tensor_scale.hpp"
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

// 1-D blocks along axis `k`.
geometry along_axis(const tensor::shape& s, std::size_t k, int length) {
    const auto n = static_cast<std::uint64_t>(length);
    const std::uint64_t outer = product(s, 0, k);
    const std::uint64_t inner = product(s, k + 1, s.size());
    geometry g;
    g.grid =
        inner == 1 ? block::grid{{1, outer, s[k]}, 1, n} : block::grid{{outer, s[k], inner}, n, 1};
    g.grid_shape = s;
    g.grid_shape[k] = blocks_along(s[k], length);
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
        reason = "its dialect raises exponents along rows, the last axis";
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
std::optional<geometry> in_areas(geometry g, const tensor::shape& shape, const codec::recipe& r,
                                 std::string& reason) {
    const block::grid& grid = g.grid;
    if (!lay_areas(g.grid, r, reason)) return std::nullopt;
    const bool rows = r.outer.what == codec::outer_choice::kind::row;
    g.area_shape = {grid.area_rows(), grid.area_cols()};
    if (r.axis.what == axis_choice::kind::flat || shape.size() < 2) return g;
    g.area_shape.assign(shape.begin(), shape.end() - 2);
    g.area_shape.push_back(rows ? shape[shape.size() - 2] : grid.area_rows());
    g.area_shape.push_back(grid.area_cols());
    return g;
}

// Transforms run along the block axis; along the columns of tiles.
std::optional<geometry> with_joint(geometry g, const transform::rotation& how,
                                   std::string& reason) {
    if (how.what == transform::kind::matrix) transform::load_matrix(how);
    (g.grid.block_cols == 1 ? g.grid.joint_rows : g.grid.joint_cols) =
        static_cast<std::uint64_t>(how.size);
    if (panel_plan(g.grid.over, std::span(&g.grid, 1)).unit_elements() > largest_joint) {
        reason = fmt::format(
            "blocks and the groups of its transform come out even only every {} elements or more; "
            "use blocks that are a power of two",
            largest_joint);
        return std::nullopt;
    }
    return g;
}

std::optional<geometry> lay_out_blocks(const tensor::shape& shape, const codec::recipe& r,
                                       std::string& reason) {
    const int rows = r.block.rows;
    const int cols = r.block.cols;
    const std::size_t rank = shape.size();
    if (r.axis.what == axis_choice::kind::flat) {
        const std::uint64_t all = product(shape, 0, rank);
        return geometry{{{1, 1, all}, 1, static_cast<std::uint64_t>(cols)},
                        {blocks_along(all, cols)}};
    }
    if (r.axis.what == axis_choice::kind::index) {
        const int axis = r.axis.value < 0 ? r.axis.value + static_cast<int>(rank) : r.axis.value;
        if (axis < 0 || axis >= static_cast<int>(rank)) {
            reason = fmt::format("it has {} ax{}s, the recipe needs axis {}", rank,
                                 rank == 1 ? "i" : "e", r.axis.value);
            return std::nullopt;
        }
        return along_axis(shape, static_cast<std::size_t>(axis), cols);
    }
    const std::uint64_t last = rank == 0 ? 1 : shape[rank - 1];
    const std::uint64_t before = rank < 2 ? 1 : shape[rank - 2];
    const std::uint64_t leading = rank < 3 ? 1 : product(shape, 0, rank - 2);
    geometry g;
    g.grid_shape = shape;
    if (rank >= 1) g.grid_shape[rank - 1] = blocks_along(last, cols);
    if (rank >= 2) g.grid_shape[rank - 2] = blocks_along(before, rows);
    const auto br = static_cast<std::uint64_t>(rows);
    const auto bc = static_cast<std::uint64_t>(cols);
    // Tiles of 1xN blocks do not extend across matrices either.
    const bool merged = rows == 1 && r.outer.what != codec::outer_choice::kind::tile;
    g.grid = merged ? block::grid{{1, leading * before, last}, 1, bc}
                    : block::grid{{leading, before, last}, br, bc};
    return g;
}

}  // namespace

bool lay_areas(block::grid& g, const codec::recipe& r, std::string& reason) {
    const bool rows = r.outer.what == codec::outer_choice::kind::row;
    g.outer_rows = rows ? 1 : std::max<std::uint64_t>(1, g.over.rows);
    g.outer_cols = rows ? std::max<std::uint64_t>(1, g.over.cols) : 1;
    if (r.outer.what == codec::outer_choice::kind::tile) {
        g.outer_rows = static_cast<std::uint64_t>(r.outer.rows);
        g.outer_cols = static_cast<std::uint64_t>(r.outer.cols);
    }
    const std::uint64_t area =
        std::min(g.outer_rows, g.over.rows) * std::min(g.outer_cols, g.over.cols);
    if (area <= largest_area) return true;
    reason = fmt::format("a {} of it has {} elements; at most {} share an outer scale here",
                         codec::area_word(r), area, largest_area);
    return false;
}

std::optional<geometry> lay_out(const tensor::shape& shape, const codec::recipe& r,
                                std::string& reason) {
    std::optional<geometry> g = lay_out_blocks(shape, r, reason);
    if (g && codec::bumps_positions(r)) g = in_whole_rows(*g, reason);
    if (g && codec::has_outer_areas(r)) g = in_areas(*g, shape, r, reason);
    if (g && r.rotate.what != transform::kind::none) g = with_joint(*g, r.rotate, reason);
    return g;
}

}  // namespace mx::engine
