// SPDX-License-Identifier: Apache-2.0
// Reads token ids from a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mx::eval {

/// The ids in a file with one array of whole numbers (.npy, .safetensors, ...): of uint16, uint32,
/// int32 or int64, in C order, whatever the shape. Throws base::error (input) for other dtypes,
/// several arrays, negative numbers and more than 2^28 ids.
std::vector<std::uint32_t> read_tokens(const std::string& path);

}  // namespace mx::eval
