// SPDX-License-Identifier: Apache-2.0
// Tensors in memory behind the reader interface, and a file that goes away with its test.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"
#include "libmx/pipeline/model.hpp"

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
        info.bytes = bytes.size();
        info.file = "memory";
        infos_.push_back(info);
        data_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
    }

    std::vector<pipeline::tensor_ref> all() const {
        std::vector<pipeline::tensor_ref> refs;
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
    using bytes_ptr = std::shared_ptr<const std::vector<std::byte>>;
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

/// A path in the system's temporary folder, removed at the end.
class temporary_file {
  public:
    explicit temporary_file(const std::string& suffix)
        : path_((std::filesystem::temp_directory_path() /
                 ("mx-conformance-" + std::to_string(::getpid()) + suffix))
                    .string()) {}
    ~temporary_file() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// The stored bytes of tensor `name`.
inline std::vector<std::byte> bytes_of(const io::reader& file, const std::string& name) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        if (file.tensors()[i].name != name) continue;
        std::vector<std::byte> bytes(file.tensors()[i].bytes);
        file.open(i)->read(0, bytes);
        return bytes;
    }
    throw std::out_of_range("no tensor " + name);
}

/// `count` codes of `bits` each from their packed form: a little-endian stream of bits, where 4-
/// and 6-bit codes are dense and any other width takes a byte.
inline std::vector<std::uint8_t> unpacked(const std::vector<std::byte>& bytes, int bits,
                                          std::size_t count) {
    const std::size_t width = bits == 4 || bits == 6 ? static_cast<std::size_t>(bits) : 8;
    std::vector<std::uint8_t> codes;
    for (std::size_t i = 0; i < count; ++i) {
        unsigned code = 0;
        for (std::size_t b = 0; b < width; ++b) {
            const std::size_t at = i * width + b;
            const auto byte = std::to_integer<unsigned>(bytes.at(at / 8));
            code |= (byte >> (at % 8) & 1u) << b;
        }
        codes.push_back(static_cast<std::uint8_t>(code));
    }
    return codes;
}

}  // namespace mx::tests
