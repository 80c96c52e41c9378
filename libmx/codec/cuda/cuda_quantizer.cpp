// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"

namespace mx::codec::cuda {
namespace {

void start(const launch& l, base::cuda::stream& on) {
    launch own = l;
    own.by_instruction = bodies_by_instruction();
    base::cuda::check(enqueue(own, on.handle()), "starting the kernel");
}

// Asked once.
const std::string& obstacle() {
    static const std::string found = base::cuda::obstacle(has_code_for_device);
    return found;
}

}  // namespace

std::string missing() { return obstacle(); }
std::unique_ptr<quantizer> make_quantizer() {
    return make_device_quantizer(base::cuda::first_device(), start);
}

}  // namespace mx::codec::cuda
