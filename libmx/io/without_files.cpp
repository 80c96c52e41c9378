// SPDX-License-Identifier: Apache-2.0
// In place of the readers and writers of target mx_files, where a program is linked without it: its
// functions are not weak.
#include <fmt/format.h>

#include "libmx/base/status.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

[[noreturn]] void not_linked(const std::string& path, std::string_view what) {
    throw base::error(base::error_kind::unavailable,
                      fmt::format("this program was built without {} files: link mx::mx in place "
                                  "of mx::core",
                                  what),
                      {path, {}, {}});
}

}  // namespace

#define MX_WEAK __attribute__((weak))

// Only what a mark at the beginning tells.
MX_WEAK bool looks_like_pytorch(const file_probe&) { return false; }
MX_WEAK bool looks_like_distributed(const file_probe&) { return false; }
MX_WEAK bool looks_like_keras(const file_probe&) { return false; }
MX_WEAK bool looks_like_onnx(const file_probe&) { return false; }
MX_WEAK bool looks_like_zip(const file_probe& p) { return p.head.starts_with("PK\x03\x04"); }
MX_WEAK bool looks_like_hdf5(const file_probe& p) {
    return p.head.starts_with("\x89HDF\r\n\x1a\n");
}

MX_WEAK std::unique_ptr<reader> open_pytorch(shared_file file, const open_options&) {
    not_linked(file->path(), "PyTorch");
}
MX_WEAK std::unique_ptr<reader> open_distributed(shared_file file, const open_options&) {
    not_linked(file->path(), "PyTorch");
}
MX_WEAK std::unique_ptr<reader> open_keras(shared_file file, const open_options&) {
    not_linked(file->path(), "Keras");
}
MX_WEAK std::unique_ptr<reader> open_onnx(shared_file file, const open_options&) {
    not_linked(file->path(), "ONNX");
}
MX_WEAK std::unique_ptr<reader> open_npz(shared_file file, const open_options&) {
    not_linked(file->path(), "zip");
}
MX_WEAK std::unique_ptr<reader> open_hdf5(shared_file file, const open_options&) {
    not_linked(file->path(), "HDF5");
}
MX_WEAK std::unique_ptr<array_writer> create_hdf5(const std::string& path,
                                                  const std::vector<planned_array>&,
                                                  const metadata_map&) {
    not_linked(path, "HDF5");
}
MX_WEAK std::string onnx_support() { return {}; }

#undef MX_WEAK

}  // namespace mx::io
