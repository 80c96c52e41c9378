// SPDX-License-Identifier: Apache-2.0
// The CRC-32 of bytes that are read piecewise and in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace mx::io {

/// Gathers the checksums of the parts seen and joins neighbours, so that the whole is checked as
/// soon as every byte has been seen once, in whatever order. Gives up, reporting nothing, when
/// the parts are too scattered to remember. Thread-safe.
class range_checksum {
  public:
    /// The whole has `size` bytes and should have the checksum `expected`.
    range_checksum(std::uint64_t size, std::uint32_t expected) : size_(size), expected_(expected) {}

    /// Takes `bytes`, which stand at `offset`. False when the whole is now known and is wrong.
    bool add(std::uint64_t offset, std::span<const std::byte> bytes);

  private:
    struct part {
        std::uint64_t end;
        std::uint32_t crc;
    };
    void insert(std::uint64_t begin, part added);

    std::uint64_t size_;
    std::uint32_t expected_;
    std::mutex mutex_;
    std::map<std::uint64_t, part> parts_;  ///< by first byte; disjoint, never adjacent
    bool settled_ = false;
};

}  // namespace mx::io
