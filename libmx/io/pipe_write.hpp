// SPDX-License-Identifier: Apache-2.0
// Writing to something that may be a pipe.
#pragma once

#include <cstddef>
#include <span>

namespace mx::io {

/// Writes all of `bytes` to `descriptor`; 0, or the errno of the failure. A pipe without a reader
/// is EPIPE here, whatever the program does about the signal SIGPIPE.
int write_all(int descriptor, std::span<const std::byte> bytes) noexcept;

}  // namespace mx::io
