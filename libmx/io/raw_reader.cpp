// SPDX-License-Identifier: Apache-2.0
// Raw binary, described by the user.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

// "64x128"; "-" is a scalar.
tensor::shape parse_shape(const std::string& text) {
    tensor::shape shape;
    if (text == "-") return shape;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
        std::uint64_t extent = 0;
        const auto [next, problem] = std::from_chars(at, end, extent);
        if (problem != std::errc{}) break;
        shape.push_back(extent);
        if (next == end) return shape;
        if (*next != 'x' && *next != 'X') break;
        at = next + 1;
    }
    base::refuse("shape: '{}' is not of the form 64x128", text);
}

class raw_reader final : public file_reader {
  public:
    raw_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)), offset_(options.offset) {
        if (options.shape.empty() || options.dtype.empty()) {
            base::refuse("raw binary needs both a shape and a dtype");
        }
        tensor_info info;
        info.name = array_name(file_->path());
        info.type = parse_dtype("dtype", options.dtype);
        info.shape = parse_shape(options.shape);
        info.file = file_->path();
        if (!count_bytes(info)) base::refuse("shape: {} is too large", options.shape);
        if (offset_ > file_->size() || info.bytes > file_->size() - offset_) {
            fail({}, fmt::format(
                         "{} of shape {} from byte {} on takes {} bytes, the file has {} in all",
                         tensor::row_of(info.type).name, options.shape, offset_, info.bytes,
                         file_->size()));
        }
        tensors_.push_back(std::move(info));
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        return file_window(file_, offset_, info.bytes, info.name);
    }

  private:
    std::uint64_t offset_;
};

}  // namespace

std::unique_ptr<reader> open_raw(shared_file file, const open_options& options) {
    return std::make_unique<raw_reader>(std::move(file), options);
}

}  // namespace mx::io
