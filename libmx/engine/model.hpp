// SPDX-License-Identifier: Apache-2.0
// Several files as one model, and the selection of its tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

/// A file that was read, and the argument that named it: the file itself, or a directory, a
/// pattern, an index.
struct input_file {
    std::string path;
    std::uint64_t bytes = 0;
    std::string given;
};

/// Throws base::error (usage) with both files if two tensors have the same name: outputs and tables
/// could not tell them apart. `of`: what holds them, for the message; empty: the files.
void require_names_once(std::span<const tensor_ref> tensors, const std::string& of = {});

/// Opened files in the order given.
class model {
  public:
    /// `paths`: files, directories and patterns (io::input_paths). Throws base::error: input for
    /// files that cannot be read, usage for a view that does not apply.
    model(const std::vector<std::string>& paths, const io::open_options& options,
          const view_request& views = {});

    /// The tensors after applying the views, in one reader.
    const io::reader& reader() const { return view_ ? *view_ : *readers_.front(); }
    /// All tensors, whatever their names.
    std::vector<tensor_ref> tensors() const;
    /// The selected tensors: see above. Throws base::error (usage) also if two files of one
    /// directory have a selected tensor of the same name: it holds a model twice.
    std::vector<tensor_ref> select(const std::vector<std::string>& globs) const;
    /// Every file read, in order.
    std::vector<input_file> files() const;
    /// The files as stored, without views.
    const std::vector<std::unique_ptr<io::reader>>& readers() const { return readers_; }

  private:
    std::vector<std::unique_ptr<io::reader>> readers_;
    std::vector<std::string> given_;            ///< by reader: the path that named it
    std::map<std::string, std::string> parts_;  ///< the directory of each of its several files
    std::unique_ptr<io::reader> view_;          ///< none: the only file as it is
};

}  // namespace mx::engine
