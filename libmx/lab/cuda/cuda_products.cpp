// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/lab/cuda/device_products.hpp"

namespace mx::lab::cuda {
namespace {

void start(const product_launch& l, base::cuda::stream& on) {
    base::cuda::check(enqueue(l, on.handle()), "starting the kernel");
}

}  // namespace

std::unique_ptr<device_products> make_products(double least) {
    return std::make_unique<device_products>(base::cuda::first_device(), start, least);
}

}  // namespace mx::lab::cuda
