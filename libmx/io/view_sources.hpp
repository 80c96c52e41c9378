// SPDX-License-Identifier: Apache-2.0
// Tensors seen differently from how they are stored: a part of an axis, two axes swapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libmx/io/sources.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// `source` holds `elements` values of a dtype of less than a byte; the result holds them as F32.
std::unique_ptr<byte_source> unpacked(shared_source source, tensor::dtype type);

/// Indices [begin, begin + count) of axis `axis` of a tensor of `shape` with elements of `width`
/// bytes. Short runs are read together with what lies between them, in bounded memory.
std::unique_ptr<byte_source> part_of_axis(shared_source source, const tensor::shape& shape,
                                          std::size_t axis, std::uint64_t begin,
                                          std::uint64_t count, std::size_t width);

/// The last two axes of `shape` swapped; elements of `width` bytes (1, 2, 4, 8 or 16). A matrix is
/// rearranged when it is first read (strided.hpp: bounded memory, a temporary file for large
/// ones), and a few of them are kept at a time.
std::unique_ptr<byte_source> transposed(shared_source source, const tensor::shape& shape,
                                        std::size_t width);

}  // namespace mx::io
