// SPDX-License-Identifier: Apache-2.0
// In place of cuda_engine.cpp in a build without CUDA.
#include "libmx/base/cuda/missing.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/cuda/cuda_engine.hpp"

namespace mx::gemm::cuda {

bool available() { return false; }
std::string missing() { return std::string(base::cuda::not_built); }
bool computes(const accumulator&, const operand&, const operand&) { return false; }

std::unique_ptr<engine> make(const operand&, const operand&, const accumulator&, int) {
    throw base::error(base::error_kind::unavailable, "backend cuda: " + missing());
}

}  // namespace mx::gemm::cuda
