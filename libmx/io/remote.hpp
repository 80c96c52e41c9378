// SPDX-License-Identifier: Apache-2.0
// Files at addresses, through libcurl, of target mx_remote; a program that is linked without it
// gets an error (without_files.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Whether `path` is an address: https://, http://, hf:// (Hugging Face) or s3://.
inline bool is_remote(std::string_view path) {
    constexpr std::array<std::string_view, 4> schemes{"https://", "http://", "hf://", "s3://"};
    return std::ranges::any_of(schemes, [&](std::string_view s) { return path.starts_with(s); });
}

/// How many files in the folder of `path` are opened at a time: at an address, each takes several
/// round trips.
inline int opened_at_once(std::string_view path) { return is_remote(path) ? 16 : 1; }

/// Opens the file at an address and requests its first bytes. path() of a file of hf:// names the
/// commit. Throws base::error: usage for what is not an address, input if the file cannot be read
/// by ranges, unavailable in a build without libcurl.
shared_file open_remote(const std::string& path);

/// The files of a repository of hf://, or of a folder in it, as addresses that name the commit,
/// sorted, those in further folders left out; none for the address of a file. Throws as
/// open_remote.
std::optional<std::vector<std::string>> remote_listing(const std::string& path);

/// The version of libcurl that reads addresses; empty if this build has none.
std::string remote_support();

}  // namespace mx::io
