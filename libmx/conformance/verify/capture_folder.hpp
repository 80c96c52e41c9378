// SPDX-License-Identifier: Apache-2.0
// The folder that mx_capture writes: manifest.json and the files that it lists.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mx::conformance::verify {

inline constexpr std::string_view capture_manifest = "manifest.json";
/// Where in the folder files lie: conversions, matrix instructions, products of a library.
inline constexpr std::string_view capture_rooms[] = {"cvt", "mma", "gemm"};

/// Whether `folder` has a manifest.
bool is_capture(const std::string& folder);

/// The files of a recording, in the order of its manifest, after checking that every one is there,
/// has the size and SHA-256 that the manifest states, and that no other vector file is. Throws
/// base::error (input).
std::vector<std::string> captured_files(const std::string& folder);

/// How many parts its manifest says were not recorded. Throws base::error (input).
std::size_t parts_not_recorded(const std::string& folder);

}  // namespace mx::conformance::verify
