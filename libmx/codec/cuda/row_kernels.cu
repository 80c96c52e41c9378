// SPDX-License-Identifier: Apache-2.0
// Rows with rounding by arithmetic, for every device.
#include "libmx/codec/cuda/row_kernels.cuh"
#include "libmx/codec/cuda/row_kernels.hpp"

namespace mx::codec::cuda {

int enqueue_rows(const launch& l, std::uint32_t bodies, void* stream) {
    return enqueue_rows_by<grid_converter>(l, bodies, stream);
}

}  // namespace mx::codec::cuda
