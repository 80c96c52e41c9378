// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file: version, metadata, and the position of each tensor (ggml-org/ggml,
// docs/gguf.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// An array of the metadata; one of the two is empty.
struct gguf_array {
    std::vector<std::string> texts;
    std::vector<double> numbers;  ///< booleans are 0 and 1
};

struct gguf_header {
    std::uint32_t version = 0;
    bool big_endian = false;  ///< header and data; version 3 can be either
    std::vector<gguf_tensor> tensors;
    std::uint64_t alignment = 32;
    std::uint64_t entries = 0;                           ///< of the metadata
    std::uint64_t metadata_begin = 0, metadata_end = 0;  ///< its bytes in the file
    std::optional<std::uint64_t> file_type_at;  ///< the byte of the UINT32 general.file_type
    /// Scalars and texts in words; of an array the first elements and the count.
    std::map<std::string, std::string> metadata;
    std::map<std::string, gguf_array> arrays;  ///< those that were requested, in full
};

/// Reads and checks the header of a GGUF file of version 2 or 3. `whole` names arrays of texts or
/// numbers of the metadata to keep in full; those that the file lacks are not in `arrays`. Throws
/// base::error (input), also for two entries of one name, for tensors that overlap or are outside
/// the file, and for a requested array of arrays, of more than 2^22 elements or of a text of more
/// than 64 KiB.
gguf_header read_gguf_header(const shared_file& file, std::span<const std::string_view> whole = {});

}  // namespace mx::io
