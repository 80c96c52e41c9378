// SPDX-License-Identifier: Apache-2.0
// Reads tensors of a safetensors file as float32.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::lab {

/// An open file whose tensors are read by name. Errors are base::error (input) with file and
/// tensor.
class tensor_file {
  public:
    /// Throws if the file cannot be read or is damaged.
    explicit tensor_file(const std::string& path);

    const std::string& path() const { return path_; }
    const std::map<std::string, std::string>& metadata() const { return reader_->metadata(); }
    bool has(const std::string& name) const { return index_.contains(name); }
    /// Names of the tensors, sorted.
    std::vector<std::string> names() const;
    const io::tensor_info& info(const std::string& name) const;
    /// The values, which must be exactly representable in float32. Unless empty, `shape` must be
    /// the tensor's.
    std::vector<float> read(const std::string& name, const tensor::shape& shape = {}) const;
    /// The values from element `first` on, as many as `to` holds; likewise.
    void read_part(const std::string& name, std::uint64_t first, std::span<float> to) const;
    /// The stored bytes of a tensor, which must have this dtype.
    std::vector<std::byte> bytes(const std::string& name, tensor::dtype type) const;
    [[noreturn]] void fail(const std::string& message, const std::string& tensor = {}) const;

  private:
    std::string path_;
    std::unique_ptr<io::reader> reader_;
    std::map<std::string, std::size_t> index_;
};

}  // namespace mx::lab
