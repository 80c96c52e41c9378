// SPDX-License-Identifier: Apache-2.0
// ONNX tensors whose values are in files beside the model. For onnx*.cpp only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "libmx/files/onnx/onnx_model.hpp"

namespace mx::io {

/// Where a tensor's values are: a file, and where in it.
struct onnx_place {
    std::string path;
    std::uint64_t offset = 0;
};

/// Finds external data below the folder of a model.
class onnx_externals {
  public:
    explicit onnx_externals(const std::string& model_path);

    /// The place of the `bytes` of `t`. Throws base::error (input) when the location leaves the
    /// folder, the file is missing, or the range is not in it or has another length.
    onnx_place place_of(const onnx_tensor& t, std::uint64_t bytes);
    /// The files asked for so far and their sizes.
    const std::map<std::string, std::uint64_t>& files() const noexcept { return files_; }

  private:
    std::string model_path_;
    std::string folder_;
    std::map<std::string, std::uint64_t> files_;
};

}  // namespace mx::io
