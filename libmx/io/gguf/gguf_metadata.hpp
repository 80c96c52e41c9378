// SPDX-License-Identifier: Apache-2.0
// The values of GGUF's metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libmx/io/file_cursor.hpp"

namespace mx::io {

struct gguf_value {
    std::string text;                     ///< in words; long texts and arrays abbreviated
    std::optional<std::uint32_t> number;  ///< of a UINT32
};

/// Reads the value at the cursor, its type first. Throws base::error (input).
gguf_value read_gguf_value(file_cursor& at);

/// A length of eight bytes and that many bytes, at most `limit`; `what` is named in errors.
std::string read_gguf_text(file_cursor& at, std::uint64_t limit, const char* what);

}  // namespace mx::io
