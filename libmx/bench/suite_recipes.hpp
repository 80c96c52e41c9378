// SPDX-License-Identifier: Apache-2.0
// The recipes of the parity list: one for each property that may make a kernel fast or slow.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::bench {

struct suite_recipe {
    std::string group;
    codec::recipe recipe;
};

/// Every block format with every scale rule, every rounding, form of NVFP4, shape of block, dialect
/// with blocks, offset and rotation; each recipe once, mxfp4 first.
std::vector<suite_recipe> suite_recipes();

/// THE LIST of recipes without vector kernels in any backend, which the portable reference
/// computes.
inline constexpr std::array<std::string_view, 7> scalar_recipes{
    "mxfp4:dialect=microxcaling-bf16",  "mxfp8:dialect=microxcaling-bf16",
    "mxint8:dialect=microxcaling-bf16", "nvfp4:dialect=ggml",
    "mxfp4:dialect=systems-scaling",    "mxfp8:dialect=systems-scaling",
    "mxint8:dialect=systems-scaling",
};

}  // namespace mx::bench
