// SPDX-License-Identifier: Apache-2.0
// The parity list: a recipe for each thing that a kernel can find easy or hard.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::bench {

struct road_recipe {
    std::string family;
    codec::recipe recipe;
};

/// Every block format under every rule of its scale, every rounding, form of NVFP4, shape of block,
/// dialect with blocks, offset, rotation; each recipe once, mxfp4 first.
std::vector<road_recipe> road_recipes();

/// THE LIST of those that no backend has vector kernels for: the portable reference does them.
inline constexpr std::array<std::string_view, 1> scalar_recipes{""};

}  // namespace mx::bench
