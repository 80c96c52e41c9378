// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/hdf5_service.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"

namespace mx::io {
namespace {

// All that the HDF5 library does for a reader happens in a child process: a damaged file can keep
// it busy for ever, make it take all memory, or crash it.
class hdf5_reader final : public reader {
  public:
    hdf5_reader(shared_file file, const open_options& options)
        : file_(std::move(file)),
          as_(parse_as(options.as)),
          worker_(start_hdf5(file_, as_)),
          tensors_(list_hdf5(*worker_, file_->path())) {}

    const std::vector<tensor_info>& tensors() const override { return tensors_; }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) {
            throw base::error(base::error_kind::input, info.note, {info.file, info.name, {}});
        }
        return open_hdf5_source(worker_, index, info);
    }
    // Read when asked for, and by another child: the library is at its weakest with damaged
    // attributes, and a file that has them still has its tensors.
    const std::map<std::string, std::string>& metadata() const override {
        std::call_once(asked_, [this] {
            try {
                metadata_ = hdf5_text_attributes(*start_hdf5(file_, as_));
            } catch (const base::error&) {
                metadata_.clear();
            }
        });
        return metadata_;
    }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override {
        return {{file_->path(), file_->size()}};
    }

  private:
    shared_file file_;
    std::optional<tensor::dtype> as_;
    std::shared_ptr<const isolated_worker> worker_;
    std::vector<tensor_info> tensors_;
    mutable std::once_flag asked_;
    mutable std::map<std::string, std::string> metadata_;
};

}  // namespace

bool looks_like_hdf5(const file_probe& probe) {
    constexpr std::string_view mark = "\x89HDF\r\n\x1a\n";
    if (probe.head.starts_with(mark)) return true;
    // A user block of a power of two may come before.
    for (std::uint64_t at = 512; at <= probe.file->size() / 2; at *= 2) {
        std::array<char, 8> found{};
        probe.file->read(at, std::as_writable_bytes(std::span(found)));
        if (std::string_view(found.data(), found.size()) == mark) return true;
    }
    return false;
}

std::unique_ptr<reader> open_hdf5(shared_file file, const open_options& options) {
    return std::make_unique<hdf5_reader>(std::move(file), options);
}

}  // namespace mx::io
