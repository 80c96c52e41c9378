// SPDX-License-Identifier: Apache-2.0
// Which tensors are operands of products, and whether their blocks are whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/policy/figures.hpp"

namespace mx::policy {

/// Axes longer than 1.
int long_axes(const std::vector<std::uint64_t>& shape);

/// Whether a dtype, in safetensors' spelling, is a floating type; unknown names are.
bool is_floating(std::string_view dtype);

/// The axis that products with the tensor sum over: its extent (K); if it is not known, that of the
/// last axis.
std::uint64_t summed_extent(const measured_tensor& t);

/// Whether the recipe's blocks are whole: along the axis that products sum over, or the axis that
/// the recipe names. With axis=flat this is checked for all axes after the first long one together:
/// those that a convolution sums over.
bool holds_whole_blocks(const measured_tensor& t, const codec::recipe& r);

/// K rounded up to whole blocks of the recipe.
std::uint64_t padded_extent(const measured_tensor& t, const codec::recipe& r);

/// What to do about an extent that blocks do not divide: "K = 172 is not a multiple of 32; padded
/// to 192 it costs 11.6 % more".
std::string padding_text(const measured_tensor& t, const codec::recipe& r);

/// The recipe without axis and seeds: equal for measurements of the same recipe.
codec::recipe without_axis(codec::recipe r);
/// Its canonical spelling.
std::string recipe_key(const codec::recipe& r);

}  // namespace mx::policy
