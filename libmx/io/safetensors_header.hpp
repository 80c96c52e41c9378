// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: u64 length, JSON, then the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// Longest header, in bytes, as in the reference implementation.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

struct safetensors_entry {
    std::string name;
    tensor::dtype type = tensor::dtype::f32;
    tensor::shape shape;
    std::uint64_t elements = 0;
    std::uint64_t begin = 0;  ///< bytes from the start of the data
    std::uint64_t end = 0;
    std::uint64_t stated = 0;  ///< byte of the file where the header's entry ends
};

struct safetensors_header {
    std::vector<safetensors_entry> entries;  ///< in the order of their data
    std::map<std::string, std::string> metadata;
    std::uint64_t data_start = 0;  ///< bytes from the start of the file
};

/// Reads and checks the header. Throws base::error (input), distinct for every way in which it
/// can be wrong. As the reference implementation does, it wants the tensors to cover the data
/// exactly: no overlap, no gap, nothing after the last. Unlike it, the number of F4 and F6
/// elements need not fill the last byte.
safetensors_header read_safetensors_header(const shared_file& file);

/// Whether the specification has `type`.
bool safetensors_has(tensor::dtype type);

}  // namespace mx::io
