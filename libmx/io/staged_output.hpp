// SPDX-License-Identifier: Apache-2.0
// The file behind every writer: filled under a temporary name, renamed by commit().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {

/// A destination that is being prepared. A regular file (existing or not) is staged in the folder
/// of its final path and renamed; symbolic links are followed; an existing file's permissions are
/// kept. "-" (standard output), /dev/stdout, /dev/stderr, /dev/fd/N, devices, pipes and sockets are
/// staged in $TMPDIR and copied at commit(). Errors are base::error naming the path: output, or
/// closed_pipe if the reader has gone.
class staged_output {
  public:
    /// Checks that the destination can be written; for a regular file by creating the stage.
    explicit staged_output(const std::string& path);
    /// Removes the stage unless it was committed.
    ~staged_output();
    staged_output(const staged_output&) = delete;
    staged_output& operator=(const staged_output&) = delete;

    /// Sets the size; bytes never written are zero. Fails at once if the disk is too full.
    void reserve(std::uint64_t size);
    /// Thread-safe for disjoint ranges once reserve() or write_at() was called.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    /// What was written so far; zeros elsewhere.
    void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
    /// Renames the file to its final path. `tail` follows the `tail_offset` bytes before it; a
    /// destination that needed no stage so far receives it directly.
    void commit(std::uint64_t tail_offset = 0, std::string_view tail = {});

    const std::string& path() const noexcept { return path_; }
    [[noreturn]] void fail(std::string_view what, int error_number) const;

  private:
    void resolve();
    void create_stage();
    void copy_out(std::string_view tail);
    void drop() noexcept;

    std::string path_;    ///< as given
    std::string target_;  ///< after symbolic links; empty when written to directly
    int direct_ = -1;     ///< descriptor to write to directly, when path_ names one
    unsigned mode_ = 0;   ///< permissions of the file that is replaced
    bool replaces_ = false;
    std::string stage_;
    int descriptor_ = -1;
    bool committed_ = false;
};

/// Throws base::error (output).
[[noreturn]] void output_error(const std::string& message, base::error_place place);

/// Destination of an array's bytes; `offset` counts from the end of the header.
struct array_place {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// A file that begins with `header` and has arrays at `places`.
std::unique_ptr<array_writer> stage_arrays(const std::string& path, const std::string& header,
                                           std::vector<array_place> places);

/// The same, into a stage that has its header already; offsets count from the file's start.
std::unique_ptr<array_writer> stage_arrays(std::unique_ptr<staged_output> stage,
                                           std::vector<array_place> places);

/// Bytes of a planned array. Throws base::error (output) when the shape is too large.
std::uint64_t planned_bytes(const std::string& path, const planned_array& array);

}  // namespace mx::io
