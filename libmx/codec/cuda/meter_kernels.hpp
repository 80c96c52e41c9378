// SPDX-License-Identifier: Apache-2.0
// Kernels that only move memory, for the bandwidth limits. Sizes are multiples of 16 bytes;
// pointers are device pointers aligned to 16 bytes. Each returns the runtime's error code, 0 if the
// kernel was queued on `stream` (a cudaStream_t).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mx::codec::cuda {

/// Adds up all 32-bit words of `from`, modulo 2^32, onto `sum`.
int enqueue_read(const std::byte* from, std::uint64_t bytes, std::uint32_t* sum, void* stream);

int enqueue_copy(std::byte* to, const std::byte* from, std::uint64_t bytes, void* stream);

}  // namespace mx::codec::cuda
