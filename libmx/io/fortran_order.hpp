// SPDX-License-Identifier: Apache-2.0
// Arrays whose first axis runs fastest, as C order.
#pragma once

#include <cstddef>
#include <memory>

#include "libmx/io/sources.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// `source` holds the elements (of `width` bytes: 1, 2, 4, 8 or 16) of `shape`, first axis
/// fastest; the result reads them last axis fastest, as from_strided does.
std::unique_ptr<byte_source> from_fortran_order(shared_source source, tensor::shape shape,
                                                std::size_t width);

}  // namespace mx::io
