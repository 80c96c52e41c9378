// SPDX-License-Identifier: Apache-2.0
// Views with any strides, as C order: transposed, sliced with steps, expanded, and arrays whose
// first axis runs fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libmx/io/sources.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// `source` holds elements of `width` bytes (1, 2, 4, 8 or 16); element (i, j, ...) of the view is
/// its element i*strides[0] + j*strides[1] + ... The result reads the view in C order: straight
/// from the source where its last axis has small steps, otherwise rearranged at the first read, in
/// boxes of bounded memory, into a spool. The caller has checked that the view lies inside the
/// source.
std::unique_ptr<byte_source> from_strided(shared_source source, const tensor::shape& shape,
                                          const std::vector<std::uint64_t>& strides,
                                          std::size_t width);

/// The same for elements that lie first axis fastest.
std::unique_ptr<byte_source> from_fortran_order(shared_source source, const tensor::shape& shape,
                                                std::size_t width);

/// Extents of a box of at most `budget` elements within `shape`, long along the axes that come
/// first in `reading` (runs when reading) and along the last axes (runs when writing).
tensor::shape rearranging_box(const tensor::shape& shape, const std::vector<std::size_t>& reading,
                              std::uint64_t budget);

}  // namespace mx::io
