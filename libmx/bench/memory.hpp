// SPDX-License-Identifier: Apache-2.0
// Buffers for measuring read and copy bandwidth of main memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mx::bench {

/// Zeroed memory with one part per thread. Each thread first touches its own part, so that the part
/// is allocated near its core. Uses huge pages if the system grants them.
class measured_memory {
  public:
    /// Allocates at least `bytes`. Throws std::bad_alloc if that fails.
    measured_memory(std::size_t bytes, int threads);
    ~measured_memory();
    measured_memory(const measured_memory&) = delete;
    measured_memory& operator=(const measured_memory&) = delete;

    std::span<std::byte> bytes() { return {data_, part_ * parts_}; }
    std::span<const std::byte> bytes() const { return {data_, part_ * parts_}; }

    /// Every thread reads its part once. Returns seconds.
    double read_once() const;
    /// Every thread copies the first half of its part to the second. Returns seconds; half of the
    /// bytes are read and as many written.
    double copy_once();

  private:
    std::byte* data_ = nullptr;
    std::size_t part_ = 0;  ///< bytes
    std::size_t parts_;
};

/// The step of the two loops below, in bytes: counts are multiples of it, addresses multiples of
/// 64.
inline constexpr std::size_t memory_step = 4096;

/// Loads every byte with the widest vectors of this CPU. The return value depends on all of them,
/// so that the compiler cannot remove loads.
std::uint64_t read_all(const std::byte* from, std::size_t bytes);

/// Copies with non-temporal stores if the CPU has them.
void copy_all(const std::byte* from, std::byte* to, std::size_t bytes);

/// Bytes of this CPU's largest cache, 0 if the system does not report it.
std::uint64_t largest_cache();

}  // namespace mx::bench
