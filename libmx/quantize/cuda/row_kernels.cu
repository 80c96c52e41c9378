// SPDX-License-Identifier: Apache-2.0
// Rows with rounding by arithmetic, for every device.
#include "libmx/quantize/cuda/row_kernels.cuh"
#include "libmx/quantize/cuda/row_kernels.hpp"

namespace mx::quantize::cuda {

int enqueue_rows(const launch& l, std::uint32_t bodies, void* stream) {
    return enqueue_rows_by<grid_converter>(l, bodies, stream);
}

}  // namespace mx::quantize::cuda
