// SPDX-License-Identifier: Apache-2.0
// The identity of a file's content: pages list it for every input.
#pragma once

#include <atomic>
#include <string>

namespace mx::io {

/// The SHA-256 of a regular file's bytes, in 64 lower-case hexadecimal digits. Reads it once, a
/// megabyte at a time. Throws base::error: input if it cannot be read, cancelled if `cancel` is
/// raised.
std::string sha256_of(const std::string& path, const std::atomic<bool>* cancel = nullptr);

}  // namespace mx::io
