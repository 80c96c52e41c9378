// SPDX-License-Identifier: Apache-2.0
// The names of inputs in options or files, as paths to open.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mx::io {

/// Replaces patterns (*, ?, [set]) that are not the name of a file by the paths they match, sorted.
/// Addresses stay as they are. Throws base::error (input) for a pattern without a match.
std::vector<std::string> matched_paths(const std::vector<std::string>& named);

/// The same, and replaces directories without a shard index by their *.safetensors, sorted, if
/// there are several; other directories are left to open_model. Throws base::error (input) also for
/// links without a target or in a circle, and what require_all_shards throws.
std::vector<std::string> input_paths(const std::vector<std::string>& named);

/// Of each set of shards, NAME-0000I-of-0000N with any ending, of which `files` are some, but not
/// all: how many there are, and which are missing. "8 of the 11 shards of 'NAME': 00002, 00004,
/// 00005 of 00011 are missing"
std::vector<std::string> missing_shards(const std::vector<std::string>& files);

/// Refuses (base::error, input) the files of a folder without an index if they lack some
/// shards of a set.
void require_all_shards(const std::string& folder, const std::vector<std::string>& files);

/// Whether `path` is a directory, or a folder that can be listed where it is remote (remote.hpp).
/// Throws what remote_listing throws.
bool is_folder(const std::string& path);

/// The content of a directory or such a folder, as paths, sorted; of a remote folder its files.
/// Throws base::error (input), and what remote_listing throws.
std::vector<std::string> paths_in(const std::string& directory);

/// The path of the file that `file`, a path or an address, refers to as `named`: below the folder
/// of `file`, and at an address exactly if `file` is. None for any other name (base::stays_inside).
std::optional<std::string> path_beside(const std::string& file, const std::string& named);

}  // namespace mx::io
