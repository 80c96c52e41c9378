// SPDX-License-Identifier: Apache-2.0
// What a user or a file names as input, as paths to open.
#pragma once

#include <string>
#include <vector>

namespace mx::io {

/// Replaces patterns (*, ?, [set]) that are no file themselves by the paths they match, sorted.
/// Addresses stay as they are. Throws base::error (input) for a pattern without a match.
std::vector<std::string> matched_paths(const std::vector<std::string>& named);

/// The same, and directories without a shard index replaced by their *.safetensors, sorted, when
/// there are several; other directories are left to open_model. Throws base::error (input) also for
/// links that lead nowhere or in a circle.
std::vector<std::string> input_paths(const std::vector<std::string>& named);

/// Whether `path` is a directory, or a folder that can be listed where it is remote (remote.hpp).
/// Throws what remote_listing throws.
bool is_folder(const std::string& path);

/// What is in a directory or such a folder, as paths, sorted; of a remote folder its files.
/// Throws base::error (input), and what remote_listing throws.
std::vector<std::string> paths_in(const std::string& directory);

/// Whether `path`, as a file names it, stays below the directory it is relative to: a downloaded
/// file must not reach files elsewhere.
bool stays_inside(const std::string& path);

}  // namespace mx::io
