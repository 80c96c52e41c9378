// SPDX-License-Identifier: Apache-2.0
// Shapes with checked arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/tensor/dtypes.hpp"

namespace mx::tensor {

/// Extents from the slowest to the fastest axis (C order); empty is a scalar (0-d).
using shape = std::vector<std::uint64_t>;

/// Product of the extents (1 for 0-d, 0 with a zero extent); none when it exceeds 2^62.
std::optional<std::uint64_t> element_count(const shape& s);

/// Bytes of `elements` packed values of `type`, the last byte padded; none on overflow of 2^62.
std::optional<std::uint64_t> byte_count(dtype type, std::uint64_t elements);

/// "64x128", "-" for a scalar.
std::string to_string(const shape& s);

}  // namespace mx::tensor
