// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/file_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "libmx/base/status.hpp"

namespace mx::io {
namespace {

constexpr std::uint64_t buffer_bytes = 64 << 10;

}  // namespace

file_cursor::file_cursor(shared_file file, std::uint64_t limit)
    : file_(std::move(file)), limit_(limit) {}

void file_cursor::fail(const std::string& message, const std::string& tensor) const {
    throw base::error(base::error_kind::input, message, {file_->path(), tensor, position_});
}

void file_cursor::check(std::uint64_t length) const {
    if (length > remaining()) {
        fail(fmt::format("the header needs {} bytes here, the file has {}; it may be cut short",
                         length, remaining()));
    }
    if (length > limit_ - std::min(position_, limit_)) {
        fail(fmt::format("the header is longer than {} bytes, which no real file needs", limit_));
    }
}

void file_cursor::take(std::span<std::byte> out) {
    check(out.size());
    std::size_t done = 0;
    while (done < out.size()) {
        const bool inside =
            position_ >= buffer_begin_ && position_ - buffer_begin_ < buffer_.size();
        if (!inside) {
            buffer_.resize(static_cast<std::size_t>(std::min(buffer_bytes, remaining())));
            buffer_begin_ = position_;
            file_->read(position_, buffer_);
        }
        const auto at = static_cast<std::size_t>(position_ - buffer_begin_);
        const std::size_t count = std::min(out.size() - done, buffer_.size() - at);
        std::memcpy(out.data() + done, buffer_.data() + at, count);
        position_ += count;
        done += count;
    }
}

std::string file_cursor::text(std::uint64_t length) {
    check(length);
    std::string out(static_cast<std::size_t>(length), '\0');
    take(std::as_writable_bytes(std::span(out.data(), out.size())));
    return out;
}

void file_cursor::skip(std::uint64_t length) {
    check(length);
    position_ += length;
}

}  // namespace mx::io
