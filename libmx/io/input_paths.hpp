// SPDX-License-Identifier: Apache-2.0
// The names of inputs in options or files, as paths to open.
#pragma once

#include <string>
#include <vector>

namespace mx::io {

/// Replaces patterns (*, ?, [set]) that are not the name of a file by the paths they match, sorted.
/// Addresses stay as they are. Throws base::error (input) for a pattern without a match.
std::vector<std::string> matched_paths(const std::vector<std::string>& named);

/// The same, and replaces directories without a shard index by their *.safetensors, sorted, if
/// there are several; other directories are left to open_model. Throws base::error (input) also for
/// links without a target or in a circle.
std::vector<std::string> input_paths(const std::vector<std::string>& named);

/// Whether `path` is a directory, or a folder that can be listed where it is remote (remote.hpp).
/// Throws what remote_listing throws.
bool is_folder(const std::string& path);

/// The content of a directory or such a folder, as paths, sorted; of a remote folder its files.
/// Throws base::error (input), and what remote_listing throws.
std::vector<std::string> paths_in(const std::string& directory);

/// Whether `path`, as named in a file, stays below the directory it is relative to: a downloaded
/// file must not refer to files elsewhere.
bool stays_inside(const std::string& path);

/// Such a path in its shortest spelling, without "." and repeated slashes: a file has one.
std::string plain_path(const std::string& path);

}  // namespace mx::io
