// SPDX-License-Identifier: Apache-2.0
// The tensors that a pickle of PyTorch describes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/files/pytorch/pickle_graph.hpp"
#include "libmx/files/pytorch/torch_dtypes.hpp"
#include "libmx/files/pytorch/torch_functions.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// A view of a storage. Numbers are as in the pickle: not checked against a file.
struct torch_tensor {
    const torch_dtype* type = nullptr;  ///< null if the note says everything
    std::string_view storage;           ///< name of the record with the bytes
    std::uint64_t storage_bytes = 0;    ///< bytes of the storage, as the pickle says
    std::uint64_t offset = 0;           ///< first element, counted in elements
    tensor::shape shape;
    std::vector<std::uint64_t> strides;  ///< in elements
    std::string note;                    ///< why it cannot be read as numbers
};

/// The row of the function or class that an object would call; null if unknown.
const torch_function* known_function(const pickle_graph& graph, pickle_ref callee);

/// The dtype that a global such as torch.float32 names; null for anything else.
const torch_dtype* dtype_of(const pickle_graph& graph, pickle_ref ref);

/// Whether `ref` itself is a tensor or a bare storage.
bool is_tensor(const pickle_graph& graph, pickle_ref ref);

/// Reads the tensor `ref`. Throws base::error (input) naming `file` and `name` if the pickle
/// describes no valid tensor.
torch_tensor read_tensor(const pickle_graph& graph, pickle_ref ref, const std::string& file,
                         const std::string& name);

/// The integers of a tuple, a list or a torch.Size, none if one is negative or not an integer, or
/// if there are more than a tensor has axes.
std::optional<std::vector<std::uint64_t>> extents_of(const pickle_graph& graph, pickle_ref ref);

}  // namespace mx::io
