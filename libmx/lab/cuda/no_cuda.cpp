// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_arrays.cpp in builds without CUDA.
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/lab/cuda/device_arrays.hpp"

namespace mx::lab::cuda {

std::unique_ptr<device_arrays> make_arrays() { base::cuda::refuse(); }

}  // namespace mx::lab::cuda
