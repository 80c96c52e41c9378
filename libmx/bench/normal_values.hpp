// SPDX-License-Identifier: Apache-2.0
// Input values for benchmarks: the same on every machine, distributed like weights.
#pragma once

#include <cstddef>
#include <span>

#include "libmx/codec/tensor_scale.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::bench {

/// Fills `out` with approximately normal numbers of `type` (f32, bf16 or f16) with standard
/// deviation 1/32. They repeat after 524287 numbers. Returns the facts of all of these.
codec::tensor_facts fill_normal(tensor::dtype type, std::span<std::byte> out);

}  // namespace mx::bench
