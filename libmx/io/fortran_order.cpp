// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/fortran_order.hpp"

#include <utility>
#include <vector>

#include "libmx/io/strided.hpp"

namespace mx::io {

std::unique_ptr<byte_source> from_fortran_order(shared_source source, tensor::shape shape,
                                                std::size_t width) {
    std::vector<std::uint64_t> strides(shape.size(), 1);
    for (std::size_t k = 1; k < shape.size(); ++k) strides[k] = strides[k - 1] * shape[k - 1];
    return from_strided(std::move(source), shape, strides, width);
}

}  // namespace mx::io
