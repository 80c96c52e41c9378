// SPDX-License-Identifier: Apache-2.0
// Built for the same devices as all kernels: if this one runs, they do.
#include <cuda_runtime.h>

#include "libmx/base/cuda/device_memory.hpp"

namespace mx::base::cuda {
namespace {

__global__ void probe() {}

}  // namespace

int has_code_for_device() {
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, probe);
}

}  // namespace mx::base::cuda
