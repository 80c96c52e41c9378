// SPDX-License-Identifier: Apache-2.0
// The folder that mx_capture writes: manifest.json and the files listed in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mx::conformance::verify {

inline constexpr std::string_view capture_manifest = "manifest.json";
/// Subfolders: conversions, matrix instructions, products of a library.
inline constexpr std::string_view capture_rooms[] = {"cvt", "mma", "gemm"};

/// Whether `folder` has a manifest.
bool is_capture(const std::string& folder);

/// The files of a recording in the order of its manifest. Checks that every file exists and has the
/// size and SHA-256 stated in the manifest, and that there is no other vector file. Throws
/// base::error (input).
std::vector<std::string> captured_files(const std::string& folder);

/// The number of parts that the manifest lists as not recorded. Throws base::error (input).
std::size_t parts_not_recorded(const std::string& folder);

}  // namespace mx::conformance::verify
