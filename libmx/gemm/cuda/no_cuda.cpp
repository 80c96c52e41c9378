// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_engine.cpp in builds without CUDA.
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/gemm/cuda/device_engine.hpp"

namespace mx::gemm::cuda {

bool computes(const accumulator&, const operand&, const operand&) { return false; }
std::unique_ptr<engine> make(const operand&, const operand&, const accumulator&, int) {
    base::cuda::refuse();
}

}  // namespace mx::gemm::cuda
