// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/execution_context.hpp"

#include <algorithm>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/lab/cuda/device_products.hpp"

namespace mx::lab {

namespace {

bool is_device(std::string_view backend) {
    return !backend.empty() && base::backends[base::backend_named(backend)].is_device();
}

}  // namespace

execution_context::execution_context(int threads, std::string_view backend, base::notices* notices)
    : kernels_(&simd::best()), threads_(base::thread_count(threads)), notices_(notices) {
    if (is_device(backend)) {
        device_ = cuda::make_products();
    } else {
        kernels_ = &simd::named(backend);
    }
    const codec::backend& by = codec::backend_named(kernels_->name);
    for (int i = 0; i < threads_; ++i) quantizers_.push_back(by.make_quantizer());
}

execution_context::execution_context(int threads, std::unique_ptr<cuda::device_products> device,
                                     base::notices* notices)
    : execution_context(threads, std::string_view(), notices) {
    device_ = std::move(device);
}

execution_context::execution_context(execution_context&&) noexcept = default;
execution_context::~execution_context() = default;

void execution_context::leave_device(const base::cuda::no_room& short_of) {
    if (notices_ == nullptr) throw short_of;
    notices_->once("training", base::cuda::went_elsewhere(short_of, kernels_->name));
    device_.reset();
}

void execution_context::split(
    std::size_t count, std::size_t grain,
    const std::function<void(std::size_t, std::size_t, int)>& body) const {
    if (threads_ == 1 || count <= grain) return body(0, count, 0);
    // Several parts per thread balance the load.
    const std::size_t parts = static_cast<std::size_t>(threads_) * 4;
    const std::size_t step = ((count + parts - 1) / parts + grain - 1) / grain * grain;
    base::parallel_for_waiting((count + step - 1) / step, threads_,
                               [&](std::uint64_t i, int thread) {
                                   const std::size_t begin = static_cast<std::size_t>(i) * step;
                                   body(begin, std::min(count, begin + step), thread);
                               });
}

codec::quantizer& execution_context::quantizer(int thread) {
    return *quantizers_[static_cast<std::size_t>(thread)];
}

}  // namespace mx::lab
