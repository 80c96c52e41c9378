// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/lab/cuda/device_arrays.hpp"

namespace mx::lab::cuda {
namespace {

void check(int code) { base::cuda::check(code, "starting the kernel"); }

constexpr starters by_cuda{
    [](const job& what, std::uint64_t count, base::cuda::stream& on) {
        check(enqueue(what, count, on.handle()));
    },
    [](const product_launch& l, base::cuda::stream& on) { check(enqueue(l, on.handle())); }};

}  // namespace

std::unique_ptr<device_arrays> make_arrays() {
    return std::make_unique<device_arrays>(base::cuda::first_device(), by_cuda,
                                           codec::cuda::starters_for(0));
}

}  // namespace mx::lab::cuda
