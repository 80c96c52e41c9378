// SPDX-License-Identifier: Apache-2.0
// Numbers and texts put one after the other, as the two sides of an isolated_worker exchange them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mx::io {

class message_writer {
  public:
    message_writer& number(std::uint64_t value);
    message_writer& text(std::string_view value);
    std::string finish() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// Reads what message_writer wrote. The sender is not trusted: throws base::error (input) where
/// the bytes end early.
class message_reader {
  public:
    explicit message_reader(std::string_view bytes) : rest_(bytes) {}
    std::uint64_t number();
    std::string text();
    /// A number of things that follow, each of which takes at least eight bytes.
    std::uint64_t count();

  private:
    std::string_view rest_;
};

}  // namespace mx::io
