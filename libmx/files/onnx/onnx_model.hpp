// SPDX-License-Identifier: Apache-2.0
// The tensors of an ONNX file. For onnx*.cpp only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libmx/files/onnx/onnx_types.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

inline constexpr std::size_t onnx_nodes_limit = 1 << 18;

/// A run of bytes in a file.
struct byte_range {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
};

/// Where external_data stores the values, as stated in the file.
struct onnx_external {
    std::string location;
    std::string offset;
    std::string length;
};

struct onnx_tensor {
    std::string name;
    std::uint64_t type_id = 0;
    tensor::shape shape;
    byte_range message;                        ///< the TensorProto itself
    std::optional<byte_range> raw;             ///< raw_data
    std::map<onnx_field, std::uint64_t> held;  ///< bytes in each field of typed values
    bool is_external = false;
    onnx_external external;
    std::string note;  ///< why it is only listed, if so
};

/// A node of the main graph, with the attributes that say how it uses its inputs.
struct onnx_node {
    std::string operation, name;
    std::vector<std::string> inputs, outputs;
    std::map<std::string, std::vector<std::int64_t>> numbers;  ///< attributes of whole numbers
    std::string equation;                                      ///< of Einsum
};

struct onnx_model {
    /// Initializers of the main graph, then tensors of its Constant nodes under the name of their
    /// output, in the file's order. Sparse initializers and subgraphs are there with a note.
    std::vector<onnx_tensor> tensors;
    std::map<std::string, std::string> metadata;
    std::vector<onnx_node> nodes;  ///< none if there are more than onnx_nodes_limit
};

/// Walks a ModelProto; values are passed over. Throws base::error (input) when it is malformed or
/// has two tensors of one name, and (unavailable) in builds without protobuf.
onnx_model read_onnx_model(const shared_file& file);

}  // namespace mx::io
