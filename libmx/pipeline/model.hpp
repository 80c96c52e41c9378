// SPDX-License-Identifier: Apache-2.0
// Several files as one model, and the choice of tensors in it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::pipeline {

/// A tensor of an opened model.
struct tensor_ref {
    const io::reader* file;
    std::size_t index;
    const io::tensor_info& info() const { return file->tensors()[index]; }
};

/// Opened files in the order given.
class model {
  public:
    model(const std::vector<std::string>& paths, const io::open_options& options);

    /// All tensors, or those whose name matches one of `globs` (*, ?, [set]; a pattern matches the
    /// whole name). Throws base::error (usage) naming a glob that matches nothing.
    std::vector<tensor_ref> select(const std::vector<std::string>& globs) const;
    /// Path and bytes of every file read, in order.
    std::vector<std::pair<std::string, std::uint64_t>> files() const;
    const std::vector<std::unique_ptr<io::reader>>& readers() const { return readers_; }

  private:
    std::vector<std::unique_ptr<io::reader>> readers_;
};

}  // namespace mx::pipeline
