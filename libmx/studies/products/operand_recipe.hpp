// SPDX-License-Identifier: Apache-2.0
// The quantization of an operand before a product: blocks under a recipe, or a plain conversion.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "libmx/codec/recipe.hpp"
#include "libmx/format/element_formats.hpp"

namespace mx::products {

/// A conversion without blocks.
struct plain_format {
    std::string_view name;
    std::string_view summary;
    const format::element_format* element = nullptr;  ///< FP8 and smaller; null otherwise
};

/// THE LIST of plain conversions: f32 first (no change), then the wider formats, then the
/// floating-point element formats.
std::span<const plain_format> plain_formats();

struct operand_recipe {
    std::optional<codec::recipe> blocks;
    const plain_format* plain = nullptr;  ///< without `blocks`
    bool tensor_scaled = false;           ///< plain FP8 under one float32 scale per tensor

    /// The rotation applied before quantization.
    transform::rotation rotation() const { return blocks ? blocks->rotate : transform::rotation{}; }
};

/// Parses a block recipe (codec::parse_recipe), or the name of a plain format: "none" is "f32", and
/// "e4m3:scale=tensor" (any element format) divides by amax / largest value first. Throws
/// base::error (usage) if it is neither, and for recipes that a product cannot use: those with an
/// axis of their own, and those whose scales differ within a block.
operand_recipe parse_operand_recipe(const std::string& text);

/// The same of a parsed recipe. Throws as parse_operand_recipe.
operand_recipe operand_recipe_of(const codec::recipe& r);

/// The canonical spelling; parse_operand_recipe reads it back.
std::string to_string(const operand_recipe& r);

/// `r` with the transform `name` (none, hadamard, random-hadamard) over groups of `size` elements
/// (0: the recipe's default). Plain formats are returned unchanged.
operand_recipe with_transform(const operand_recipe& r, std::string_view name, int size);

/// The rotation of both operands along the summed axis, so that it cancels: that of the recipes
/// with blocks. Throws base::error (usage) if they differ.
transform::rotation common_rotation(const operand_recipe& a, const operand_recipe& b);

}  // namespace mx::products
