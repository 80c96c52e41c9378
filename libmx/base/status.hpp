// SPDX-License-Identifier: Apache-2.0
// The one exception type of the library. It says what went wrong, where (file, tensor, byte
// offset), and what to do, in one line; the application turns its kind into an exit code.
#pragma once

#ifndef __CUDACC__  // nvcc cannot compile fmt's checks
#include <fmt/core.h>
#endif

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace mx::base {

/// What kind of failure this is; decides the exit code of the command line (design: 2, 3, 3, 4,
/// 130, 70).
enum class error_kind {
    usage,        ///< the request names something that does not exist or does not fit
    input,        ///< an input is missing, unreadable or malformed
    output,       ///< an output could not be written
    unavailable,  ///< a backend or optional feature is not available here
    cancelled,    ///< the cancel flag was raised
    closed_pipe,  ///< the reader of an output pipe ended: a normal end for a command
};

/// Where it went wrong; empty members are left out of the message.
struct error_place {
    std::string file;
    std::string tensor;
    std::optional<std::uint64_t> offset;  ///< byte offset in `file`
};

/// Thrown by every room. `what()` is one line without a trailing newline; control characters are
/// escaped, and the file, the tensor and the message are cut after 1000 bytes each.
class error : public std::runtime_error {
  public:
    error(error_kind kind, std::string message, error_place place = {});

    error_kind kind() const noexcept { return kind_; }
    const std::string& message() const noexcept { return message_; }
    const error_place& place() const noexcept { return place_; }

  private:
    error_kind kind_;
    std::string message_;
    error_place place_;
};

/// Throws an error of the kind usage.
[[noreturn]] void refuse(std::string message, error_place place = {});
#ifndef __CUDACC__
/// The same with a message formatted by fmt::format.
template <typename... Values>
requires(sizeof...(Values) > 0)
    [[noreturn]] void refuse(fmt::format_string<Values...> text, Values&&... values) {
    refuse(fmt::format(text, std::forward<Values>(values)...));
}
#endif

/// Bytes of the well-formed UTF-8 sequence at `at` (Unicode table 3-7), 0 if there is none.
std::size_t utf8_length(const std::string& s, std::size_t at);

/// The code point of such a sequence of `length` bytes.
char32_t code_point(const std::string& text, std::size_t at, std::size_t length);

/// Bytes of the character at `at` if it is not shown as itself: control characters (C0, DEL, C1),
/// line and paragraph separators, those that change the direction of the text around them, and
/// invisible ones (of zero width, soft hyphens, variation selectors, tags); 0 otherwise.
std::size_t control_length(const std::string& text, std::size_t at);

/// The first `most` bytes of `text`, up to a border of characters, and "..." for the rest.
std::string cut(const std::string& text, std::size_t most);

/// `text` with such characters and invalid UTF-8 replaced by \xNN escapes, and without secrets
/// (secrets.hpp), so that a name from a file can be printed on a terminal.
std::string printable(const std::string& text);

}  // namespace mx::base
