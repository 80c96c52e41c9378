// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/gguf/gguf_mxfp4.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

class gguf_reader final : public reader {
  public:
    explicit gguf_reader(shared_file file)
        : file_(std::move(file)), header_(read_gguf_header(file_)) {
        for (const gguf_tensor& tensor : header_.tensors) tensors_.push_back(describe(tensor));
    }

    const std::vector<tensor_info>& tensors() const override { return tensors_; }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        const gguf_tensor& tensor = header_.tensors[index];
        if (!info.note.empty()) {
            throw base::error(base::error_kind::input, info.note,
                              {info.file, info.name, tensor.begin});
        }
        auto stored = file_window(file_, tensor.begin, tensor.bytes, info.name);
        if (tensor.type_id == gguf_mxfp4_type) return gguf_mxfp4_values(std::move(stored));
        const std::size_t width = tensor.type->block_bytes;
        if (!header_.big_endian || width == 1) return stored;
        return byte_swapped(std::move(stored), width);
    }
    const std::map<std::string, std::string>& metadata() const override { return header_.metadata; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override {
        return {{file_->path(), file_->size()}};
    }

  private:
    tensor_info describe(const gguf_tensor& tensor) const {
        tensor_info info;
        info.name = tensor.name;
        info.file = file_->path();
        info.shape = tensor.shape;
        info.elements = tensor.elements;
        if (tensor.type != nullptr && tensor.type->read_as) {
            info.type = *tensor.type->read_as;
            info.bytes = *tensor::byte_count(info.type, info.elements);
            if (tensor.type_id == gguf_mxfp4_type) {
                info.layout = tensor.type->name;
                info.remark = "decoded from GGUF blocks of 32, each with an E8M0 scale";
                info.stored_bytes = tensor.bytes;
            }
        } else {
            info.type = tensor::dtype::other;
            info.bytes = tensor.bytes;
            info.note = tensor.type != nullptr
                            ? fmt::format("ggml's {} blocks are not decoded", tensor.type->name)
                            : fmt::format("unknown ggml type {}", tensor.type_id);
        }
        return info;
    }

    shared_file file_;
    gguf_header header_;
    std::vector<tensor_info> tensors_;
};

}  // namespace

bool looks_like_gguf(const file_probe& probe) { return probe.head.starts_with("GGUF"); }

std::unique_ptr<reader> open_gguf(shared_file file, const open_options&) {
    return std::make_unique<gguf_reader>(std::move(file));
}

}  // namespace mx::io
