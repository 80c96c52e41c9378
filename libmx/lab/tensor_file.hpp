// SPDX-License-Identifier: Apache-2.0
// Tensors of a safetensors file, as float32.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::lab {

/// An opened file whose tensors are read by name. Errors are base::error (input), with the place.
class tensor_file {
  public:
    /// Throws where the file cannot be read or is damaged.
    explicit tensor_file(const std::string& path);

    const std::string& path() const { return path_; }
    const std::map<std::string, std::string>& metadata() const { return reader_->metadata(); }
    bool has(const std::string& name) const { return index_.count(name) != 0; }
    /// Names of the tensors, sorted.
    std::vector<std::string> names() const;
    const io::tensor_info& info(const std::string& name) const;
    /// The values, which float32 has to hold exactly. `shape`, unless empty, has to be the
    /// tensor's.
    std::vector<float> read(const std::string& name, const tensor::shape& shape = {}) const;
    /// The bytes as they are stored, of a tensor of this type.
    std::vector<std::byte> bytes(const std::string& name, tensor::dtype type) const;
    [[noreturn]] void fail(const std::string& message, const std::string& tensor = {}) const;

  private:
    std::string path_;
    std::unique_ptr<io::reader> reader_;
    std::map<std::string, std::size_t> index_;
};

}  // namespace mx::lab
