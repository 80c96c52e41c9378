// SPDX-License-Identifier: Apache-2.0
// In place of the readers and writers of targets mx_files and mx_remote in a program that is linked
// without them: their functions are not weak.
#include <fmt/format.h>

#include "libmx/base/status.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

[[noreturn]] void not_linked(const std::string& path, std::string_view what) {
    throw base::error(base::error_kind::unavailable,
                      fmt::format("this build does not read {} files: it was built without the "
                                  "libraries for them (MX_FILES)",
                                  what),
                      {path, {}, {}});
}

[[noreturn]] void no_addresses(const std::string& path) {
    throw base::error(base::error_kind::unavailable,
                      "this build reads no addresses: it was made without libcurl "
                      "(libcurl4-openssl-dev); fetch the file first",
                      {path, {}, {}});
}

}  // namespace

#define MX_WEAK __attribute__((weak))

// Only formats with a mark at the beginning.
MX_WEAK bool looks_like_pytorch(const file_probe&) { return false; }
MX_WEAK bool looks_like_distributed(const file_probe&) { return false; }
MX_WEAK bool looks_like_keras(const file_probe&) { return false; }
MX_WEAK bool looks_like_onnx(const file_probe&) { return false; }
MX_WEAK bool looks_like_zip(const file_probe& p) { return p.head.starts_with("PK\x03\x04"); }
MX_WEAK bool looks_like_hdf5(const file_probe& p) {
    return p.head.starts_with("\x89HDF\r\n\x1a\n");
}

#define MX_WITHOUT(open, what)                                                    \
    MX_WEAK std::unique_ptr<reader> open(shared_file file, const open_options&) { \
        not_linked(file->path(), what);                                           \
    }
MX_WITHOUT(open_pytorch, "PyTorch")
MX_WITHOUT(open_distributed, "PyTorch")
MX_WITHOUT(open_keras, "Keras")
MX_WITHOUT(open_onnx, "ONNX")
MX_WITHOUT(open_npz, "zip")
MX_WITHOUT(open_hdf5, "HDF5")
MX_WEAK std::unique_ptr<array_writer> create_hdf5(const std::string& path,
                                                  const std::vector<planned_array>&,
                                                  const metadata_map&) {
    not_linked(path, "HDF5");
}
MX_WEAK std::string onnx_support() { return {}; }

MX_WEAK std::string remote_support() { return {}; }
MX_WEAK shared_file open_remote(const std::string& path) { no_addresses(path); }
MX_WEAK std::optional<std::vector<std::string>> remote_listing(const std::string& path) {
    no_addresses(path);
}

#undef MX_WITHOUT
#undef MX_WEAK

}  // namespace mx::io
