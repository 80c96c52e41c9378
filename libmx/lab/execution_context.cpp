// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/execution_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "libmx/base/parallel.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/lab/cuda/device_arrays.hpp"

namespace mx::lab {

namespace {

bool is_device(std::string_view backend) {
    return !backend.empty() && base::backends[base::backend_named(backend)].is_device();
}

}  // namespace

execution_context::execution_context(int threads, std::string_view backend, base::notices* notices)
    : kernels_(&simd::best()), threads_(base::thread_count(threads)), notices_(notices) {
    if (is_device(backend)) {
        device_ = cuda::make_arrays();
    } else {
        kernels_ = &simd::named(backend);
    }
    const codec::backend& by = codec::backend_named(kernels_->name);
    for (int i = 0; i < threads_; ++i) quantizers_.push_back(by.make_quantizer());
}

execution_context::execution_context(int threads, std::unique_ptr<cuda::device_arrays> device,
                                     base::notices* notices)
    : execution_context(threads, std::string_view(), notices) {
    device_ = std::move(device);
}

execution_context::execution_context(execution_context&&) noexcept = default;
execution_context::~execution_context() = default;

void execution_context::leave_device(const base::cuda::out_of_memory& short_of) {
    if (notices_ == nullptr) throw short_of;
    notices_->once("training", base::cuda::went_elsewhere(short_of, kernels_->name));
    left_ = std::move(device_);
}

execution_context& execution_context::host() {
    if (device_ == nullptr) return *this;
    if (!host_) host_ = std::make_unique<execution_context>(threads_, kernels_->name, notices_);
    return *host_;
}

void execution_context::note_copies(std::string_view what) const {
    if (device_ == nullptr || notices_ == nullptr) return;
    notices_->detail(fmt::format("backend {} computes {}, with copies from and to the GPU",
                                 kernels_->name, what));
}

void execution_context::wait() const {
    if (device_ != nullptr) device_->wait();
}

void execution_context::join() const {
    if (device_ != nullptr) device_->join();
}

void execution_context::run(const job& what, std::size_t count) const {
    if (device_ != nullptr) return device_->run(what, count);
    if (count == 0) return;
    std::visit(
        [&](const auto& j) {
            split(count, j.least(),
                  [&](std::size_t begin, std::size_t end, int) { j(*kernels_, begin, end); });
        },
        what);
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
