// SPDX-License-Identifier: Apache-2.0
// Bytes read in order: of a file, a pipe or standard input. For texts; tensors are read by position
// (input_file.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "libmx/base/task.hpp"

namespace mx::io {

/// The path that means standard input.
inline constexpr std::string_view standard_input = "-";

class input_stream {
  public:
    /// Throws base::error (input) if `path` is missing or unreadable, or a directory. A pipe
    /// without a writer is empty.
    explicit input_stream(std::string path);
    ~input_stream();
    input_stream(const input_stream&) = delete;
    input_stream& operator=(const input_stream&) = delete;

    /// The next bytes, as many as fit: fewer only at the end. Throws base::error (input).
    std::size_t read(std::span<char> out);

  private:
    std::string path_;
    int descriptor_;
    std::optional<base::task> reading_;  ///< up to the end
};

}  // namespace mx::io
