// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_products.cpp in builds without CUDA.
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/lab/cuda/device_products.hpp"

namespace mx::lab::cuda {

std::unique_ptr<device_products> make_products(double) { base::cuda::refuse(); }

}  // namespace mx::lab::cuda
