// SPDX-License-Identifier: Apache-2.0
// What a user names as input, as paths to open.
#pragma once

#include <string>
#include <vector>

namespace mx::io {

/// Replaces patterns (*, ?, [set]) that are no file themselves by the paths they match, sorted.
/// Throws base::error (input) for a pattern without a match.
std::vector<std::string> matched_paths(const std::vector<std::string>& named);

/// The same, and directories without a shard index replaced by their *.safetensors, sorted, when
/// there are several; other directories are left to open_model. Throws base::error (input) also for
/// links that lead nowhere or in a circle.
std::vector<std::string> input_paths(const std::vector<std::string>& named);

}  // namespace mx::io
