// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "libmx/io/dtype_names.hpp"
#include "libmx/io/npy_header.hpp"
#include "libmx/io/readers.hpp"

namespace mx::io {
namespace {

class npy_reader final : public file_reader {
  public:
    npy_reader(shared_file file, const open_options& options) : file_reader(std::move(file)) {
        const std::string name = array_name(file_->path());
        const auto bytes = file_window(file_, 0, file_->size(), name);
        layout_ = read_npy_header(*bytes, file_->size(), parse_as(options.as), file_->path(), {});
        layout_.name = name;
        tensors_.push_back(layout_);
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        return npy_numbers(file_window(file_, 0, file_->size(), tensors_.at(index).name), layout_);
    }

  private:
    npy_layout layout_;
};

}  // namespace

bool looks_like_npy(const file_probe& probe) { return probe.head.starts_with("\x93NUMPY"); }

std::unique_ptr<reader> open_npy(shared_file file, const open_options& options) {
    return std::make_unique<npy_reader>(std::move(file), options);
}

}  // namespace mx::io
