// SPDX-License-Identifier: Apache-2.0
// Limits of a safetensors header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

/// Longest header, in bytes, as in the reference implementation.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

/// Most tensors of one file: far beyond any model (the largest have about 100,000 in all their
/// shards). Bounds the memory that a header can fill.
inline constexpr std::size_t safetensors_tensors_limit = 1 << 18;

/// Whether the specification has `type`.
bool safetensors_has(tensor::dtype type);

}  // namespace mx::io
