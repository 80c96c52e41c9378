// SPDX-License-Identifier: Apache-2.0
// Which tensors are operands of products, and along which of their axes blocks can be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::policy {

/// Axes longer than 1.
int long_axes(const std::vector<std::uint64_t>& shape);

/// Whether a dtype, in safetensors' spelling, is a floating type; unknown names are.
bool is_floating(std::string_view dtype);

/// Whether the recipe's blocks are whole along their axis or axes. With axis=flat this is checked
/// for all axes after the first long one together: those that a convolution sums over.
bool holds_whole_blocks(const std::vector<std::uint64_t>& shape, const codec::recipe& r);

/// `r` along the axis that a product over `shape` sums over, if blocks are whole there: the last
/// one (of matrices stored [out, in]), else, of three long axes or more whose last is shorter than
/// a block, all after the first (axis=flat, convolutions). None if neither is: matrices stored [in,
/// out] can have whole blocks along axis=-2, but a shape alone does not identify them.
std::optional<codec::recipe> along_whole_blocks(const std::vector<std::uint64_t>& shape,
                                                const codec::recipe& r);

/// The canonical spelling without axis and seeds: equal for measurements of the same recipe.
std::string recipe_key(codec::recipe r);

}  // namespace mx::policy
