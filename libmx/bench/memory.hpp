// SPDX-License-Identifier: Apache-2.0
// Memory to measure with: how fast this machine reads and copies it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mx::bench {

/// Zeroed memory in one part per thread, each part first touched by its thread, so that it lies
/// near that thread's core. In large pages where the system grants them.
class measured_memory {
  public:
    /// At least `bytes`; throws std::bad_alloc when there is not as much.
    measured_memory(std::size_t bytes, int threads);
    ~measured_memory();
    measured_memory(const measured_memory&) = delete;
    measured_memory& operator=(const measured_memory&) = delete;

    std::span<std::byte> bytes() { return {data_, part_ * parts_}; }
    std::span<const std::byte> bytes() const { return {data_, part_ * parts_}; }

    /// Every thread reads its part once. Seconds it took.
    double read_once() const;
    /// Every thread copies the first half of its part over the second. Seconds it took; half of
    /// the bytes were read and as many written.
    double copy_once();

  private:
    std::byte* data_ = nullptr;
    std::size_t part_ = 0;  ///< bytes
    std::size_t parts_;
};

/// Bytes that the two loops below take at a time; counts are multiples of it, addresses of 64.
inline constexpr std::size_t memory_step = 4096;

/// Loads every byte, in the widest vectors of this processor; the return value depends on all of
/// them, so that no load can be left out.
std::uint64_t read_all(const std::byte* from, std::size_t bytes);

/// Copies, past the caches where the processor can.
void copy_all(const std::byte* from, std::byte* to, std::size_t bytes);

/// Bytes of this processor's largest cache, 0 when the system does not tell.
std::uint64_t largest_cache();

}  // namespace mx::bench
