// SPDX-License-Identifier: Apache-2.0
// In place of cuda_batch.cpp in a build without CUDA.
#include "libmx/base/status.hpp"
#include "libmx/quantize/cuda/cuda_driver.hpp"

namespace mx::quantize::cuda {

bool available() { return false; }

std::string missing() {
    return "built without CUDA; with CUDA 13 or later installed, configure with -DMX_CUDA=on and "
           "build again";
}

std::unique_ptr<segment_batch> make_batch() {
    throw base::error(base::error_kind::unavailable, "backend cuda: " + missing());
}

}  // namespace mx::quantize::cuda
