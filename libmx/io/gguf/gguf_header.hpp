// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file: version, metadata, and the position of each tensor (ggml-org/ggml,
// docs/gguf.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libmx/io/gguf/gguf_types.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

struct gguf_tensor {
    std::string name;
    std::uint32_t type_id = 0;
    const gguf_type* type = nullptr;  ///< none: ggml added the type later
    tensor::shape shape;              ///< slowest axis first, as everywhere here
    std::uint64_t elements = 0;
    std::uint64_t begin = 0;  ///< first byte in the file
    std::uint64_t bytes = 0;  ///< as stored; 0 when the type is unknown
};

struct gguf_header {
    std::uint32_t version = 0;
    bool big_endian = false;  ///< header and data; version 3 can be either
    std::vector<gguf_tensor> tensors;
    /// Scalars and texts in words; of an array the first elements and the count.
    std::map<std::string, std::string> metadata;
};

/// Reads and checks the header of a GGUF file of version 2 or 3. Throws base::error (input), also
/// for two entries of one name and for tensors that overlap or are outside the file.
gguf_header read_gguf_header(const shared_file& file);

}  // namespace mx::io
