// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

class safetensors_reader final : public reader {
  public:
    safetensors_reader(shared_file file, const open_options& options) : file_(std::move(file)) {
        safetensors_header header = read_safetensors_header(file_);
        metadata_ = std::move(header.metadata);
        const auto as = parse_as(options.as);
        for (safetensors_entry& entry : header.entries) {
            begins_.push_back(header.data_start + entry.begin);
            tensor_info info;
            info.name = std::move(entry.name);
            info.type = read_as(entry.type, as);
            info.shape = std::move(entry.shape);
            info.elements = entry.elements;
            info.bytes = entry.end - entry.begin;
            info.file = file_->path();
            tensors_.push_back(std::move(info));
        }
    }

    const std::vector<tensor_info>& tensors() const override { return tensors_; }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        return file_window(file_, begins_[index], info.bytes, info.name);
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override {
        return {{file_->path(), file_->size()}};
    }

  private:
    shared_file file_;
    std::vector<tensor_info> tensors_;
    std::vector<std::uint64_t> begins_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace

bool looks_like_safetensors(const file_probe& probe) {
    return probe.head.size() >= 9 && probe.head[8] == '{';
}

std::unique_ptr<reader> open_safetensors(shared_file file, const open_options& options) {
    return std::make_unique<safetensors_reader>(std::move(file), options);
}

}  // namespace mx::io
