// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/read_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/io/readers.hpp"

namespace mx::io {
namespace {

// Small headers may repeat values more often than large ones.
constexpr std::uint64_t header_floor = std::uint64_t{128} << 20;
constexpr std::uint64_t header_ratio = 64;
// Compression by deflate makes at most 1032 bytes of one.
constexpr std::uint64_t decoded_floor = std::uint64_t{1} << 30;
constexpr std::uint64_t decoded_ratio = 1024;
constexpr std::uint64_t any_file = std::uint64_t{1} << 50;

constexpr std::size_t shown_name = 200;

}  // namespace

read_budget::read_budget(std::string path, std::uint64_t bytes)
    : path_(std::move(path)),
      bytes_(bytes),
      left_(header_floor + std::min(bytes, any_file) * header_ratio) {}

void read_budget::refuse(const std::string& tensor) const {
    input_error(
        fmt::format("repeats or unpacks its contents so often that its header of {} bytes "
                    "would take more than {} MiB; if it is compressed, store it uncompressed",
                    bytes_, (header_floor + std::min(bytes_, any_file) * header_ratio) >> 20),
        {path_, tensor, {}});
}

void limit_decoded(std::vector<tensor_info>& tensors, std::uint64_t file_bytes) {
    const std::uint64_t limit = decoded_floor + std::min(file_bytes, any_file) * decoded_ratio;
    std::uint64_t left = limit;
    for (tensor_info& t : tensors) {
        if (!t.note.empty()) continue;
        if (t.bytes <= left) {
            left -= t.bytes;
            continue;
        }
        t.note = fmt::format(
            "repeats stored values: of {} bytes mx reads up to {} MiB, and this tensor has {} "
            "bytes",
            file_bytes, limit >> 20, t.bytes);
        t.type = tensor::dtype::other;
    }
}

void file_reader::limit_repetition() {
    std::uint64_t bytes = 0;
    for (const auto& [path, size] : files_) bytes += std::min(size, any_file);
    limit_decoded(tensors_, bytes);
}

std::string short_name(const std::string& name) { return base::cut(name, shown_name); }

}  // namespace mx::io
