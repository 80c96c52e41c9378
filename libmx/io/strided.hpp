// SPDX-License-Identifier: Apache-2.0
// Tensors in another order than they are stored in: with any strides, first axis fastest, two axes
// swapped, a part of an axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libmx/io/sources.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// `source` has elements of `width` bytes (1, 2, 4, 8 or 16); element (i, j, ...) of the view is
/// its element i*strides[0] + j*strides[1] + ... The result reads the view in C order: directly
/// from the source if its last axis has small steps, otherwise rearranged at the first read, in
/// boxes of bounded memory, into a spool. The caller has checked that the view is inside the
/// source.
std::unique_ptr<byte_source> from_strided(shared_source source, const tensor::shape& shape,
                                          const std::vector<std::uint64_t>& strides,
                                          std::size_t width);

/// The same for elements stored first axis fastest.
std::unique_ptr<byte_source> from_fortran_order(shared_source source, const tensor::shape& shape,
                                                std::size_t width);

/// Extents of a box of at most `budget` elements within `shape`, long along the axes that come
/// first in `reading` (runs when reading) and along the last axes (runs when writing).
tensor::shape rearranging_box(const tensor::shape& shape, const std::vector<std::size_t>& reading,
                              std::uint64_t budget);

/// `source` has `elements` values of a dtype of less than a byte; the result has them as F32.
std::unique_ptr<byte_source> unpacked(shared_source source, tensor::dtype type);

/// Indices [begin, begin + count) of axis `axis` of a tensor of `shape` with elements of `width`
/// bytes. Short runs are read together with their gaps, in bounded memory.
std::unique_ptr<byte_source> part_of_axis(shared_source source, const tensor::shape& shape,
                                          std::size_t axis, std::uint64_t begin,
                                          std::uint64_t count, std::size_t width);

/// The last two axes of `shape` swapped; elements of `width` bytes (1, 2, 4, 8 or 16). A matrix is
/// rearranged when it is first read (from_strided: bounded memory, a temporary file for large
/// ones), and a few of them are kept.
std::unique_ptr<byte_source> transposed(shared_source source, const tensor::shape& shape,
                                        std::size_t width);

}  // namespace mx::io
