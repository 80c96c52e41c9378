// SPDX-License-Identifier: Apache-2.0
// Maps a tensor's shape and a recipe to matrices and blocks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "libmx/block/view.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::engine {

/// The geometry of a recipe on a tensor.
struct geometry {
    block::grid grid;
    tensor::shape grid_shape;    ///< the block grid in the tensor's own axes, for packed scales
    tensor::shape area_shape{};  ///< the same of areas with an outer scale each; empty without
    bool down = false;  ///< the rows of the recipe's blocks are columns of the grid's matrices
};

/// Axes [first, last) of a shape, neighbours in storage.
struct axis_range {
    std::size_t first = 0, last = 0;
    friend bool operator==(const axis_range&, const axis_range&) = default;
};

/// The last axis; none of a scalar.
axis_range last_axis(const tensor::shape& shape);

/// Marks in `g` the rows, columns or tiles of its matrices that have an outer scale each under `r`
/// (has_outer_areas). Returns false, with `reason` set, if too many elements share one. `down`: the
/// columns of `g` are the rows of `r`.
bool lay_areas(block::grid& g, const codec::recipe& r, std::string& reason, bool down = false);

/// The geometry of blocks along `sums`, the axes that a product sums over, unless the recipe names
/// an axis; nullopt, with `reason` set, if the tensor lacks that axis or a panel would be too
/// large. The columns of a recipe's blocks and tiles lie along `sums`, the rows along the axis
/// before, or along all axes behind `sums` if there are any. Other axes are merged where blocks do
/// not cover them: 1xN blocks along the last axis have one matrix of all rows.
std::optional<geometry> lay_out(const tensor::shape& shape, axis_range sums, const codec::recipe& r,
                                std::string& reason);

/// The same along the last axis.
std::optional<geometry> lay_out(const tensor::shape& shape, const codec::recipe& r,
                                std::string& reason);

/// The same of a tensor of a file, along the axes that products sum over (contraction.hpp).
std::optional<geometry> lay_out(const io::tensor_info& info, const codec::recipe& r,
                                std::string& reason);

}  // namespace mx::engine
