// SPDX-License-Identifier: Apache-2.0
// Numbers and texts of a binary header, one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Reads a file forwards through a small buffer. Lengths are checked against the file before
/// anything is allocated; what goes beyond its end is base::error (input) naming the byte.
class file_cursor {
  public:
    /// Nothing beyond byte `limit` is read: a bound on the time that a hostile header costs.
    file_cursor(shared_file file, std::uint64_t limit);

    std::uint64_t position() const noexcept { return position_; }
    /// Bytes of the file that come after this place.
    std::uint64_t remaining() const noexcept { return file_->size() - position_; }
    void store_big_endian(bool big) noexcept { big_endian_ = big; }

    /// The next unsigned number of sizeof(T) bytes.
    template <class T>
    T number() {
        static_assert(std::is_unsigned_v<T>);
        std::array<std::byte, sizeof(T)> bytes{};
        take(bytes);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            const std::size_t at = big_endian_ ? i : sizeof(T) - 1 - i;
            value = value << 8 | std::to_integer<std::uint64_t>(bytes[at]);
        }
        return static_cast<T>(value);
    }
    /// The next `length` bytes.
    std::string text(std::uint64_t length);
    void skip(std::uint64_t length);

    /// Throws base::error (input) that points at this place.
    [[noreturn]] void fail(const std::string& message, const std::string& tensor = {}) const;

  private:
    void take(std::span<std::byte> out);
    void check(std::uint64_t length) const;

    shared_file file_;
    std::uint64_t limit_;
    std::uint64_t position_ = 0;
    std::uint64_t buffer_begin_ = 0;
    std::vector<std::byte> buffer_;
    bool big_endian_ = false;
};

}  // namespace mx::io
