// SPDX-License-Identifier: Apache-2.0
// JSON of files we did not write: read piece by piece from a byte range, nothing stored but what
// the listener keeps, nesting bounded, duplicate keys refused. For .cpp files of this room only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/text_tables.hpp"
#include "libmx/io/input_file.hpp"

namespace mx::io {

/// A JSON value that is neither object nor array.
struct json_scalar {
    enum class type { null, boolean, natural, other_number, text };
    type is = type::null;
    std::uint64_t natural = 0;  ///< a whole number of 0 .. 2^64-1
    std::string text;           ///< the string, or the spelling of a number
};

/// Receives the events of one document in order. Members may throw.
class json_listener {
  public:
    virtual ~json_listener() = default;
    virtual void open(bool object) = 0;  ///< `{` or `[`; depth() counts it already
    virtual void close() = 0;            ///< `}` or `]`; depth() counts it still
    virtual void key(const std::string& name) = 0;
    virtual void scalar(const json_scalar& value) = 0;

    /// Throws base::error (input) at the byte the parser has reached.
    [[noreturn]] void fail(const std::string& message, const std::string& tensor = {}) const;
    std::size_t depth() const noexcept { return keys_.size(); }
    /// Bytes of the file up to the parser's position.
    std::uint64_t position() const;

  private:
    friend class json_events;
    const void* stream_ = nullptr;
    const input_file* file_ = nullptr;
    std::vector<base::text_set> keys_;  ///< seen per open object
};

/// Reports the document in bytes [offset, offset + length) of `file` to `listener`. `what` names
/// the document in errors ("header"). Throws base::error (input) with the byte offset if it is not
/// JSON, repeats a key, or nests more than 16 deep.
void parse_json(const shared_file& file, std::uint64_t offset, std::uint64_t length,
                std::string_view what, json_listener& listener);

inline constexpr std::uint64_t largest_config = std::uint64_t{1} << 24;

/// The same for a whole file of at most largest_config bytes as Python's json writes it: NaN,
/// Infinity and -Infinity are numbers (other_number).
void parse_config(const shared_file& file, json_listener& listener);

}  // namespace mx::io
