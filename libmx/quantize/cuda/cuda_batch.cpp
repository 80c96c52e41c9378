// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/quantize/cuda/cuda_driver.hpp"
#include "libmx/quantize/cuda/device_batch.hpp"

namespace mx::quantize::cuda {
namespace {

void start(const launch& l, base::cuda::stream& on) {
    base::cuda::check(enqueue(l, on.handle()), "starting the kernel");
}

// Asked once.
const std::string& obstacle() {
    static const std::string found = base::cuda::obstacle(has_code_for_device);
    return found;
}

}  // namespace

bool available() { return obstacle().empty(); }
std::string missing() { return obstacle(); }
std::unique_ptr<segment_batch> make_batch() {
    return make_device_batch(base::cuda::first_device(), start);
}

}  // namespace mx::quantize::cuda
