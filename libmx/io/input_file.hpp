// SPDX-License-Identifier: Apache-2.0
// A file read by position: no mapping, no shared file pointer, so that any number of threads can
// read and resident memory stays what the readers allocate. All readers use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libmx/base/status.hpp"

namespace mx::io {

/// A file open for reading: a regular one, or one at an address (remote.hpp). Its size is read
/// once, at opening; a file that shrinks afterwards is an error at the first missing byte.
class input_file {
  public:
    /// Throws base::error (input) when `path` is missing, unreadable, or no regular file; for an
    /// address, what open_remote throws.
    static std::shared_ptr<const input_file> open(const std::string& path);
    /// Takes over an open file of `size` bytes, which errors name as `path`.
    static std::shared_ptr<const input_file> adopt(int descriptor, std::string path,
                                                   std::uint64_t size);
    virtual ~input_file() = default;
    input_file(const input_file&) = delete;
    input_file& operator=(const input_file&) = delete;

    const std::string& path() const noexcept { return path_; }
    std::uint64_t size() const noexcept { return size_; }
    /// For passing the file to another process or mapping it; remains this object's. Throws
    /// base::error (input) for a remote file.
    virtual int descriptor() const = 0;

    /// Fills `out` from byte `offset`. Throws base::error (input) with the offset of the first
    /// missing byte if the file ends before; `tensor` names what is being read.
    virtual void read(std::uint64_t offset, std::span<std::byte> out,
                      std::string_view tensor = {}) const = 0;
    /// Requests these bytes ahead of a read. It may do nothing.
    virtual void expect(std::uint64_t offset, std::uint64_t bytes) const = 0;
    /// Announces that these bytes are one tensor that is going to be read: a remote file may read
    /// ahead as far. Reads nothing.
    virtual void will_read(std::uint64_t, std::uint64_t) const {}
    /// The first bytes of the file, at most `count`.
    std::string head(std::size_t count) const;

  protected:
    input_file(std::string path, std::uint64_t size);

  private:
    std::string path_;
    std::uint64_t size_;
};

using shared_file = std::shared_ptr<const input_file>;

/// Throws base::error (input).
[[noreturn]] void input_error(const std::string& message, base::error_place place);

}  // namespace mx::io
