// SPDX-License-Identifier: Apache-2.0
// A model in memory, for tests of what lies above the readers.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libmx/io/reader.hpp"
#include "libmx/pipeline/model.hpp"

namespace mx::testing {

class memory_source : public io::byte_source {
  public:
    explicit memory_source(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    }

  private:
    std::vector<std::byte> bytes_;
};

class memory_reader : public io::reader {
  public:
    void add(const std::string& name, const tensor::shape& shape, const std::vector<float>& x) {
        std::vector<std::byte> bytes(x.size() * sizeof(float));
        std::memcpy(bytes.data(), x.data(), bytes.size());
        add_raw(name, tensor::dtype::f32, shape, x.size(), std::move(bytes));
    }
    void add_raw(const std::string& name, tensor::dtype type, const tensor::shape& shape,
                 std::uint64_t elements, std::vector<std::byte> bytes) {
        io::tensor_info info;
        info.name = name;
        info.type = type;
        info.shape = shape;
        info.elements = elements;
        info.bytes = bytes.size();
        info.file = "memory";
        infos_.push_back(info);
        data_.push_back(std::move(bytes));
    }
    std::vector<pipeline::tensor_ref> refs() const {
        std::vector<pipeline::tensor_ref> out;
        for (std::size_t i = 0; i < infos_.size(); ++i) out.push_back({this, i});
        return out;
    }

    const std::vector<io::tensor_info>& tensors() const override { return infos_; }
    std::unique_ptr<io::byte_source> open(std::size_t index) const override {
        return std::make_unique<memory_source>(data_[index]);
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override {
        return {{"memory", 0}};
    }

  private:
    std::vector<io::tensor_info> infos_;
    std::vector<std::vector<std::byte>> data_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace mx::testing
