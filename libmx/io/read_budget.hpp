// SPDX-License-Identifier: Apache-2.0
// What one file may cost in proportion to its own bytes, for every reader: a file can refer to one
// of its values, names or storages any number of times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::io {

/// Most axes of a tensor.
inline constexpr std::size_t axes_limit = 64;

/// Bytes of memory, of copies and of steps while the header of a file is read. Every byte of a
/// header pays for 64, more than it takes where nothing is repeated.
class read_budget {
  public:
    /// `bytes`: of the header in the file, as it is stored there.
    read_budget(std::string path, std::uint64_t bytes);
    /// Takes `bytes` for a value, or throws base::error (input) that names the file and `tensor`.
    void take(std::uint64_t bytes, const std::string& tensor = {}) {
        if (bytes > left_) refuse(tensor);
        left_ -= bytes;
    }

  private:
    [[noreturn]] void refuse(const std::string& tensor) const;

    std::string path_;
    std::uint64_t bytes_;
    std::uint64_t left_;
};

/// Gives the tensors beyond the decoded bytes that files of `file_bytes` may have a note, so that
/// they are not read. Without compression only what is repeated has more bytes than its file:
/// expanded and overlapping views, one storage under many names, datasets that are a fill value.
void limit_decoded(std::vector<tensor_info>& tensors, std::uint64_t file_bytes);

/// `name` as sentences repeat it: the first 200 bytes, and "..." for the rest.
std::string short_name(const std::string& name);

}  // namespace mx::io
