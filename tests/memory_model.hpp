// SPDX-License-Identifier: Apache-2.0
// Tensors in memory behind the reader interface, for tests of the code above the readers.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/io/reader.hpp"

namespace mx::tests {

class memory_model : public io::reader {
  public:
    template <typename T>
    void add(const std::string& name, tensor::dtype type, tensor::shape shape,
             const std::vector<T>& values) {
        std::vector<std::byte> bytes(values.size() * sizeof(T));
        if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
        io::tensor_info info;
        info.name = name;
        info.type = type;
        info.elements = *tensor::element_count(shape);
        info.shape = std::move(shape);
        // Arrays, not files: a short last axis is no window of a convolution.
        if (const int rank = static_cast<int>(info.shape.size()); rank > 2) {
            info.sums_over = {rank - 1, rank, "an array"};
        }
        info.bytes = bytes.size();
        info.file = "memory";
        infos_.push_back(info);
        data_.push_back(std::make_shared<std::vector<std::byte>>(std::move(bytes)));
    }

    /// The last tensor shares its storage with `other`.
    void tie(const std::string& other) { infos_.back().tied_to = other; }

    void describe(const std::string& key, const std::string& value) { metadata_[key] = value; }

    void forget(const std::string& key) { metadata_.erase(key); }

    /// The stored bytes of tensor `index`, to be damaged.
    std::span<std::byte> bytes(std::size_t index) { return *data_[index]; }

    std::vector<engine::tensor_ref> all() const {
        std::vector<engine::tensor_ref> refs;
        for (std::size_t i = 0; i < infos_.size(); ++i) refs.push_back({this, i});
        return refs;
    }

    const std::vector<io::tensor_info>& tensors() const override { return infos_; }
    std::unique_ptr<io::byte_source> open(std::size_t index) const override {
        return std::make_unique<source>(data_[index]);
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return {}; }

  private:
    using bytes_ptr = std::shared_ptr<std::vector<std::byte>>;
    class source : public io::byte_source {
      public:
        explicit source(bytes_ptr data) : data_(std::move(data)) {}
        void read(std::uint64_t offset, std::span<std::byte> out) const override {
            if (!out.empty()) std::memcpy(out.data(), data_->data() + offset, out.size());
        }

      private:
        bytes_ptr data_;
    };

    std::vector<io::tensor_info> infos_;
    std::vector<bytes_ptr> data_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace mx::tests
