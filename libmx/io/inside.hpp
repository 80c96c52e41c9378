// SPDX-License-Identifier: Apache-2.0
// Paths that a file names itself.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

namespace mx::io {

/// Whether `path`, as written, stays below the directory it is relative to: a downloaded file must
/// not reach files elsewhere.
inline bool stays_inside(const std::string& path) {
    const std::filesystem::path parts(path);
    if (path.empty() || parts.is_absolute() || path.find('\0') != std::string::npos) return false;
    return std::find(parts.begin(), parts.end(), "..") == parts.end();
}

}  // namespace mx::io
