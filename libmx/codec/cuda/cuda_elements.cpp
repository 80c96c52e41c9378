// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/codec/cuda/element_kernel.hpp"
#include "libmx/codec/cuda/element_stream.hpp"

namespace mx::codec::cuda {
namespace {

void start(const element_launch& l, base::cuda::stream& on) {
    base::cuda::check(enqueue(l, on.handle()), "starting the kernel");
}

}  // namespace

std::unique_ptr<caster> make_caster(base::notices* notices) {
    return make_streamed_elements(base::cuda::first_device(), start, notices);
}

}  // namespace mx::codec::cuda
