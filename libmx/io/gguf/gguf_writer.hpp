// SPDX-License-Identifier: Apache-2.0
// A GGUF file, with metadata of its own or of another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {

/// The entries of a GGUF file's metadata, as version 3 stores them. Keys are given once.
class gguf_metadata {
  public:
    void put_number(std::string_view key, std::uint32_t value);
    void put_real(std::string_view key, float value);
    void put_flag(std::string_view key, bool value);
    void put_text(std::string_view key, std::string_view value);
    void put_numbers(std::string_view key, const std::vector<std::int32_t>& values);
    void put_reals(std::string_view key, const std::vector<float>& values);
    void put_texts(std::string_view key, const std::vector<std::string>& values);

    std::uint64_t entries = 0;
    std::string bytes;
    std::uint64_t alignment = 32;  ///< of tensors
};

/// The metadata of `file`, which is little-endian, byte for byte, except that general.file_type, if
/// it is there, becomes `file_type`. Throws base::error (input) if it is malformed or big-endian.
gguf_metadata gguf_metadata_of(const shared_file& file, std::uint32_t file_type);

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

/// A GGUF file of version 3. Bytes of arrays are those that the file stores. Throws base::error
/// (usage) for the name of another format.
std::unique_ptr<array_writer> create_gguf(const std::string& path,
                                          const std::vector<planned_gguf_tensor>& plan,
                                          const gguf_metadata& metadata);

}  // namespace mx::io
