// SPDX-License-Identifier: Apache-2.0
// In place of device_memory.cpp in a build without CUDA.
#include "libmx/base/cuda/device_memory.hpp"

namespace mx::base::cuda {

std::string missing() {
    return "built without CUDA; with CUDA 12.8 or later installed, configure with -DMX_CUDA=on and "
           "build again";
}

void refuse() { throw error(error_kind::unavailable, "backend cuda: " + missing()); }

}  // namespace mx::base::cuda
