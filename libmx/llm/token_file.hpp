// SPDX-License-Identifier: Apache-2.0
// Reads token ids from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mx::llm {

/// The ids in a file with one array of whole numbers (.npy, .safetensors, ...): of uint16, uint32,
/// int32 or int64, in C order, whatever the shape. Throws base::error (input) for other dtypes,
/// several arrays, negative numbers and more than 2^28 ids.
std::vector<std::uint32_t> read_tokens(const std::string& path);

/// Throws base::error (usage), naming `file` if it is not empty, for the first id that is not below
/// `vocabulary`.
void require_ids_below(std::size_t vocabulary, std::span<const std::uint32_t> ids,
                       const std::string& file);

}  // namespace mx::llm
