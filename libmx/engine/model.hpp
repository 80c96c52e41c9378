// SPDX-License-Identifier: Apache-2.0
// Several files as one model, and the selection of its tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/engine/views.hpp"
#include "libmx/io/reader.hpp"

namespace mx::engine {

using tensor_ref = io::tensor_ref;

/// All tensors of `readers`, or those whose name matches one of `globs` (*, ?, [set]; a pattern
/// matches the whole name). Throws base::error (usage) with the glob if it matches nothing.
std::vector<tensor_ref> select(std::span<const io::reader* const> readers,
                               const std::vector<std::string>& globs);

/// Opened files in the order given.
class model {
  public:
    /// `paths`: files, directories and patterns (io::input_paths). Throws base::error: input for
    /// files that cannot be read, usage for a view that does not apply.
    model(const std::vector<std::string>& paths, const io::open_options& options,
          const view_request& views = {});

    /// The tensors after applying the views, in one reader.
    const io::reader& reader() const { return view_ ? *view_ : *readers_.front(); }
    /// The selected tensors: see above.
    std::vector<tensor_ref> select(const std::vector<std::string>& globs) const;
    /// Path and size of every file read, in order.
    std::vector<std::pair<std::string, std::uint64_t>> files() const;
    /// The files as stored, without views.
    const std::vector<std::unique_ptr<io::reader>>& readers() const { return readers_; }

  private:
    std::vector<std::unique_ptr<io::reader>> readers_;
    std::unique_ptr<io::reader> view_;  ///< none: the only file as it is
};

}  // namespace mx::engine
