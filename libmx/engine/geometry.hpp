// SPDX-License-Identifier: Apache-2.0
// Maps a tensor's shape and a recipe to matrices and blocks.
#pragma once

#include <optional>
#include <string>

#include "libmx/block/view.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::engine {

/// The geometry of a recipe on a tensor.
struct geometry {
    block::grid grid;
    tensor::shape grid_shape;    ///< the block grid in the tensor's own axes, for packed scales
    tensor::shape area_shape{};  ///< the same of areas with an outer scale each; empty without
};

/// Marks in `g` the rows, columns or tiles of its matrices that have an outer scale each under `r`
/// (has_outer_areas). Returns false, with `reason` set, if too many elements share one.
bool lay_areas(block::grid& g, const codec::recipe& r, std::string& reason);

/// The geometry; nullopt, with `reason` set, if the tensor lacks the axis or a panel would be too
/// large. Leading axes that blocks do not cover are merged: 1xN blocks have one matrix of all rows.
std::optional<geometry> lay_out(const tensor::shape& shape, const codec::recipe& r,
                                std::string& reason);

}  // namespace mx::engine
