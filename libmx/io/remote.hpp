// SPDX-License-Identifier: Apache-2.0
// Files at addresses, through libcurl, of target mx_remote: a program that is linked without it is
// told so (without_files.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Whether `path` is an address and no path: https://, http://, hf:// (Hugging Face) or s3://.
inline bool is_remote(std::string_view path) {
    for (const std::string_view scheme : {"https://", "http://", "hf://", "s3://"}) {
        if (path.starts_with(scheme)) return true;
    }
    return false;
}

/// How many files beside `path` are opened at a time: each at an address costs several journeys.
inline int opened_at_once(std::string_view path) { return is_remote(path) ? 16 : 1; }

/// Opens the file at an address, which is asked for its first bytes. path() of a file of hf://
/// names the commit. Throws base::error: usage for what is no address, input when the file cannot
/// be had by ranges, unavailable in a build without libcurl.
shared_file open_remote(const std::string& path);

/// The files of a repository of hf://, or of a folder in it, as addresses that name the commit,
/// sorted, those in further folders left out; none for the address of a file. Throws as
/// open_remote.
std::optional<std::vector<std::string>> remote_listing(const std::string& path);

/// The version of libcurl that addresses are read with; empty when this build reads none.
std::string remote_support();

}  // namespace mx::io
