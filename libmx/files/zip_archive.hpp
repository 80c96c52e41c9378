// SPDX-License-Identifier: Apache-2.0
// A zip archive through libzip, which is not thread-safe: one lock per archive.
#pragma once

#include <zip.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {

/// The CRC-32 of bytes that are read piecewise and in any order. Stores the checksums of the parts
/// seen and joins neighbours, so that the whole is checked as soon as every byte has been seen
/// once. Gives up, reporting nothing, if the parts are too scattered. Thread-safe.
class range_checksum {
  public:
    /// The whole has `size` bytes and the checksum `expected`.
    range_checksum(std::uint64_t size, std::uint32_t expected) : size_(size), expected_(expected) {}

    /// Adds `bytes` at `offset`. False if the whole is now known and is wrong.
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

struct zip_entry {
    std::string name;
    std::uint64_t index = 0;
    std::uint64_t size = 0;    ///< bytes once unpacked, as the archive says
    std::uint64_t packed = 0;  ///< bytes in the archive
    std::uint32_t crc = 0;
    int method = 0;
    bool encrypted = false;
};

/// An opened archive. Errors are base::error (input) naming file and entry.
class zip_archive : public std::enable_shared_from_this<zip_archive> {
  public:
    /// An archive that is bytes [begin, begin + size) of a file; without a size, up to its end.
    static std::shared_ptr<zip_archive> open(shared_file file, std::uint64_t begin = 0,
                                             std::optional<std::uint64_t> bytes = {});
    ~zip_archive();
    zip_archive(const zip_archive&) = delete;
    zip_archive& operator=(const zip_archive&) = delete;

    const std::vector<zip_entry>& entries() const noexcept { return entries_; }
    const std::string& path() const noexcept { return file_->path(); }

    /// The first bytes of an entry by position, unpacked as far as needed; for one thread.
    std::unique_ptr<byte_source> head(const zip_entry& entry);
    /// All bytes of an entry by position, for many threads. A stored entry is read in place; a
    /// compressed one is unpacked into a spool at the first read. The checksum is compared once
    /// everything was read.
    std::unique_ptr<byte_source> bytes(const zip_entry& entry);
    /// The same for archives whose writer may leave checksums out: a stored entry is bytes of the
    /// file, read without a lock and without comparing a checksum. Errors name `tensor`.
    std::unique_ptr<byte_source> plain_bytes(const zip_entry& entry, const std::string& tensor);

  private:
    friend class zip_stream;
    zip_archive(shared_file file, std::uint64_t begin, std::uint64_t size)
        : file_(std::move(file)), begin_(begin), size_(size) {}
    void read_directory();
    static zip_int64_t serve(void* self, void* data, zip_uint64_t length, zip_source_cmd_t command);
    /// Throws for a libzip error, or the error of the file below.
    [[noreturn]] void fail(zip_error_t* problem, const std::string& entry);

    shared_file file_;
    std::uint64_t begin_;
    std::uint64_t size_;
    std::uint64_t position_ = 0;
    std::uint64_t last_read_ = 0;  ///< position of the latest read that libzip asked for
    zip_error_t source_error_{};
    std::exception_ptr read_failure_;
    zip_t* zip_ = nullptr;
    std::vector<zip_entry> entries_;
    std::mutex mutex_;
};

}  // namespace mx::io
