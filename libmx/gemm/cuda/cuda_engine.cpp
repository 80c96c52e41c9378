// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/gemm/cuda/device_engine.hpp"

namespace mx::gemm::cuda {
namespace {

void start(const tile_launch& l, base::cuda::stream& on) {
    base::cuda::check(enqueue(l, on.handle()), "starting the kernel");
}

}  // namespace

bool computes(const accumulator& m, const operand&, const operand&) {
    return has_steps(m.how) && m.fused_length <= longest_step;
}

std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m,
                             int threads) {
    if (!computes(m, a, b)) return make_plain_engine(a, b, m);
    return make_device_engine(base::cuda::first_device(), start, a, b, m, threads);
}

}  // namespace mx::gemm::cuda
