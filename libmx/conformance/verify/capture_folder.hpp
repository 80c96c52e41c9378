// SPDX-License-Identifier: Apache-2.0
// The folder that mx_capture writes: manifest.json and the files listed in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::conformance::verify {

inline constexpr std::string_view capture_manifest = "manifest.json";
/// Subfolders: conversions, matrix instructions, products of a library.
inline constexpr std::string_view capture_rooms[] = {"cvt", "mma", "gemm"};

struct recorded_file {
    std::string file;  ///< below the folder
    std::uint64_t bytes;
    std::string sha256;
};
struct failed_part {
    std::string part, reason;
};
/// What a manifest says: the contents and origin of a folder.
struct recording_facts {
    bool hardware = false;
    std::string date;  ///< UTC
    std::string device;
    std::optional<std::string> compute_capability;
    std::string arch, driver, runtime, cublaslt;
    std::string only;  ///< parts whose file name has this in it; "": all
    std::uint64_t seed = 0, tiles = 0, hash_groups = 0, cell_stride = 0, stochastic_inputs = 0;
    std::vector<recorded_file> files;
    std::vector<failed_part> failures;
};
/// The manifest. `tool`: what wrote it.
report::document manifest_of(const recording_facts& f, const report::record& tool);
/// The schema mx.capture/1.
report::document_schema capture_schema();

/// Whether `folder` has a manifest.
bool is_capture(const std::string& folder);

/// The files of a recording in the order of its manifest. Checks that every file exists and has the
/// size and SHA-256 stated in the manifest, and that there is no other vector file. Throws
/// base::error (input).
std::vector<std::string> captured_files(const std::string& folder);

/// The number of parts that the manifest lists as not recorded. Throws base::error (input).
std::size_t parts_not_recorded(const std::string& folder);

}  // namespace mx::conformance::verify
