// SPDX-License-Identifier: Apache-2.0
// Limits of a safetensors header.
#pragma once

#include <cstdint>

#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

/// Longest header, in bytes, as in the reference implementation.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

/// Whether the specification has `type`.
bool safetensors_has(tensor::dtype type);

}  // namespace mx::io
