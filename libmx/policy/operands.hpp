// SPDX-License-Identifier: Apache-2.0
// Which tensors are operands of products, and along which of their axes blocks can lie.
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

/// Whether a dtype, in safetensors' spelling, holds floating numbers; so do names that are none.
bool is_floating(std::string_view dtype);

/// Whether the axis, or axes, of the recipe's blocks hold whole blocks only. With axis=flat that is
/// asked of all axes behind the first long one together: those that a convolution sums over.
bool holds_whole_blocks(const std::vector<std::uint64_t>& shape, const codec::recipe& r);

/// `r` along the axis that a product over `shape` sums over, if it holds whole blocks: the last one
/// (of matrices stored [out, in]), else, of three long axes or more whose last is shorter
/// than a block, all behind the first (axis=flat, convolutions). None where neither does: matrices
/// stored [in, out] can have whole blocks along axis=-2, but nothing in a shape tells them from
/// others.
std::optional<codec::recipe> along_whole_blocks(const std::vector<std::uint64_t>& shape,
                                                const codec::recipe& r);

/// The canonical spelling without axis and seeds: what two measurements of one recipe share.
std::string recipe_key(codec::recipe r);

}  // namespace mx::policy
