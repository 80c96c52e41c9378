// SPDX-License-Identifier: Apache-2.0
// What a file is called when its name says too little: reports state it for every input.
#pragma once

#include <atomic>
#include <string>

namespace mx::io {

/// The SHA-256 of a regular file's bytes, in 64 lower-case hexadecimal digits. Reads it once, a
/// megabyte at a time. Throws base::error: input when it cannot be read, cancelled when `cancel` is
/// raised.
std::string sha256_of(const std::string& path, const std::atomic<bool>* cancel = nullptr);

}  // namespace mx::io
