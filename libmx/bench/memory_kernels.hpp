// SPDX-License-Identifier: Apache-2.0
// The two loops that memory is measured with, in the widest vectors of this processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mx::bench {

/// Bytes that both kernels take at a time; counts are multiples of it, addresses of 64.
inline constexpr std::size_t memory_step = 4096;

/// Loads every byte; the return value depends on all of them, so that no load can be left out.
std::uint64_t read_all(const std::byte* from, std::size_t bytes);

/// Copies, past the caches where the processor can.
void copy_all(const std::byte* from, std::byte* to, std::size_t bytes);

}  // namespace mx::bench
