// SPDX-License-Identifier: Apache-2.0
// Storage for bytes that must be rearranged before they can be read by position: memory if they are
// few, otherwise a file that has no name and vanishes with its last user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::io {

/// Largest spool held in memory, in bytes.
inline constexpr std::uint64_t spool_memory_limit = 16 << 20;

/// A fixed number of bytes, written once and then read from any number of threads.
class spool final : public byte_source {
  public:
    /// Throws base::error (output) if $TMPDIR has no space for a temporary file.
    explicit spool(std::uint64_t size);
    ~spool() override;
    spool(const spool&) = delete;
    spool& operator=(const spool&) = delete;

    void write(std::uint64_t offset, std::span<const std::byte> bytes);
    void read(std::uint64_t offset, std::span<std::byte> out) const override;

  private:
    std::uint64_t size_;
    std::vector<std::byte> memory_;
    int descriptor_ = -1;
};

/// A source whose bytes `make` computes at the first read, once.
std::unique_ptr<byte_source> spooled(std::function<std::unique_ptr<spool>()> make);

/// $TMPDIR, or /tmp.
std::string temporary_directory();

/// Writes all of `bytes` to a file from byte `offset` on; false, with errno set, on failure.
bool write_fully(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);

/// Creates a file without a name in temporary_directory(); throws base::error (output).
int open_unnamed_file();

}  // namespace mx::io
