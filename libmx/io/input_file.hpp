// SPDX-License-Identifier: Apache-2.0
// A file read by position: no mapping, no shared file pointer, so that any number of threads can
// read and resident memory stays what the readers allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libmx/base/status.hpp"

namespace mx::io {

/// A regular file open for reading. Its size is taken once, at opening; a file that shrinks
/// afterwards is an error at the first byte that is gone.
class input_file {
  public:
    /// Throws base::error (input) when `path` is missing, unreadable, or no regular file.
    static std::shared_ptr<const input_file> open(const std::string& path);
    /// Takes over an open file of `size` bytes, which errors name as `path`.
    static std::shared_ptr<const input_file> adopt(int descriptor, std::string path,
                                                   std::uint64_t size);
    ~input_file();
    input_file(const input_file&) = delete;
    input_file& operator=(const input_file&) = delete;

    const std::string& path() const noexcept { return path_; }
    std::uint64_t size() const noexcept { return size_; }
    /// For handing the file on to another process; stays this object's.
    int descriptor() const noexcept { return descriptor_; }

    /// Fills `out` from byte `offset`. Throws base::error (input) with the offset of the first
    /// missing byte when the file ends before; `tensor` names what was being read.
    void read(std::uint64_t offset, std::span<std::byte> out, std::string_view tensor = {}) const;
    /// Asks the system to fetch these bytes ahead of a read. It may do nothing.
    void expect(std::uint64_t offset, std::uint64_t bytes) const;
    /// The first bytes of the file, at most `count`.
    std::string head(std::size_t count) const;

  private:
    input_file(std::string path, int descriptor, std::uint64_t size);

    std::string path_;
    int descriptor_;
    std::uint64_t size_;
};

using shared_file = std::shared_ptr<const input_file>;

/// Throws base::error (input).
[[noreturn]] void input_error(const std::string& message, base::error_place place);

}  // namespace mx::io
