// SPDX-License-Identifier: Apache-2.0
// The header of a .npy array, alone in a file or inside an .npz archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libmx/io/reader.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// How the bytes of an array are stored and what they mean.
struct npy_layout : tensor_info {
    bool fortran = false;        ///< first axis fastest; never set if it makes no difference
    std::size_t swap_width = 0;  ///< bytes of one big-endian number, 0 when nothing is swapped
    std::uint64_t data_start = 0;
};

/// Reads the header of the array in the first `size` bytes of `source` and checks it against
/// `size`. Bare 2-byte elements are bfloat16, as ml_dtypes writes them, unless `as` is given. Types
/// that are not numbers are described, never interpreted. Throws base::error (input) with `file`,
/// `name` and the offset in the array's own bytes. The layout stores both names.
npy_layout read_npy_header(const byte_source& source, std::uint64_t size,
                           std::optional<tensor::dtype> as, const std::string& file,
                           const std::string& name);

/// The array's numbers in C order, little-endian, from the bytes `source` that contain header and
/// data. Throws base::error (input) if they are not numbers.
std::unique_ptr<byte_source> npy_numbers(shared_source source, const npy_layout& layout);

/// numpy's description of a type, "" if it has none. Types that numpy lacks are stored as bare
/// bytes.
std::string npy_descr(tensor::dtype type);

/// The three entries of the header's dictionary.
struct npy_dictionary {
    std::string descr;  ///< empty if it is not a string (structured types)
    bool fortran = false;
    tensor::shape shape;
};

/// Parses the Python literal `{'descr': ..., 'fortran_order': ..., 'shape': (...)}` and nothing
/// else. On failure returns none and sets `problem` and its position `at` in `text`.
std::optional<npy_dictionary> parse_npy_dictionary(std::string_view text, std::string& problem,
                                                   std::size_t& at);

}  // namespace mx::io
