// SPDX-License-Identifier: Apache-2.0
// Unsigned words into a file of vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/writer.hpp"

namespace mx::capture {

/// Tensors by name, written at once.
class recording_file {
  public:
    /// `words` in the width of `type` (U8, U16 or U32).
    void add(std::string name, tensor::dtype type, tensor::shape shape,
             std::span<const std::uint32_t> words);
    /// 64-bit words as U32 of n x 2, low half first.
    void add_words64(std::string name, std::span<const std::uint64_t> words);
    /// Throws base::error (output).
    void write(const std::string& path, const io::metadata_map& metadata) const;

  private:
    std::vector<io::planned_array> plan_;
    std::vector<std::vector<std::byte>> data_;
};

}  // namespace mx::capture
