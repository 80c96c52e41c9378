// SPDX-License-Identifier: Apache-2.0
// A GGUF file with the metadata of another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {

/// A tensor of a GGUF file.
struct planned_gguf_tensor {
    std::string name;
    std::uint32_t type_id = 0;  ///< of gguf_types
    tensor::shape shape;        ///< slowest axis first
};

/// The tensors of a GGUF file as it stores them, in its order: each is U8 [bytes]. Throws
/// base::error (input) for a malformed file, and for one with tensors of unknown types.
std::unique_ptr<reader> open_gguf_stored(const shared_file& file);

/// The tensors of `file` in its order, with their types.
std::vector<planned_gguf_tensor> gguf_tensors(const shared_file& file);

/// A GGUF file of version 3 with the metadata of `from`, which is little-endian, byte for byte,
/// except that general.file_type, if it is there, becomes `file_type`. Bytes of arrays are those
/// that the file stores. Throws base::error: input if `from` is malformed or big-endian, usage for
/// the name of another format.
std::unique_ptr<array_writer> create_gguf(const std::string& path,
                                          const std::vector<planned_gguf_tensor>& plan,
                                          const shared_file& from, std::uint32_t file_type);

}  // namespace mx::io
