// SPDX-License-Identifier: Apache-2.0
// Values for measuring: the same on every machine, and shaped like weights.
#pragma once

#include <cstddef>
#include <span>

#include "libmx/tensor/dtypes.hpp"

namespace mx::bench {

/// Fills `out` with numbers of `type` (f32, bf16 or f16) that are nearly normally distributed with
/// standard deviation 1/32. They repeat after some hundred thousand.
void fill_normal(tensor::dtype type, std::span<std::byte> out);

}  // namespace mx::bench
