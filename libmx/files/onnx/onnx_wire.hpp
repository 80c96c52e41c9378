// SPDX-License-Identifier: Apache-2.0
// The fields of a protobuf message in a file, in order, without loading those that are not needed.
// For onnx*.cpp only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Walks [begin, end) of a file as one message. Malformed messages, and those longer than
/// protobuf's 2 GiB, are base::error (input) naming the byte.
class wire_reader {
  public:
    /// Throws base::error (unavailable) in builds without protobuf.
    wire_reader(shared_file file, std::uint64_t begin, std::uint64_t end);
    ~wire_reader();
    wire_reader(const wire_reader&) = delete;
    wire_reader& operator=(const wire_reader&) = delete;

    /// The next field of the message; false at its end.
    bool next();

    std::uint32_t field() const noexcept { return field_; }
    /// Whether the field is a run of bytes: a text, a message, packed numbers. If not, it is a
    /// number of size() bytes, or a varint, for which size() is 0.
    bool is_bytes() const noexcept { return is_bytes_; }
    std::uint64_t value() const noexcept { return value_; }  ///< of a number
    std::uint64_t begin() const noexcept { return begin_; }  ///< of the field's bytes in the file
    std::uint64_t size() const noexcept { return size_; }

    /// The field's bytes, at most `limit`.
    std::string text(std::uint64_t limit);
    /// Goes into the field's bytes as a message; leave() goes behind them.
    void enter();
    void leave();
    /// Inside packed varints: the next; false at their end.
    bool packed_varint(std::uint64_t& value);

    /// Throws base::error (input) with this position.
    [[noreturn]] void fail(const std::string& message, const std::string& tensor = {}) const;

  private:
    struct stream;
    std::uint64_t position() const;
    void skip_to(std::uint64_t place);

    shared_file file_;
    std::uint64_t start_;
    std::unique_ptr<stream> stream_;
    std::uint32_t field_ = 0;
    bool is_bytes_ = false;
    std::uint64_t value_ = 0;
    std::uint64_t begin_ = 0;
    std::uint64_t size_ = 0;
};

/// Version of the protobuf library in this build, empty when there is none.
std::string protobuf_version();

}  // namespace mx::io
