// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/cuda/captured_work.hpp"

namespace mx::lab::cuda {

void captured_work::forget() noexcept {
    graph_.reset();
    is_ = state::unknown;
}

void captured_work::run(device_arrays& on, const std::function<void()>& work) {
    watched_device& device = on.memory();
    if (on_ != &on || frees_ != device.frees()) forget();
    if (on_ != &on) sent_ = device_memory(on);
    on_ = &on;
    if (is_ == state::queued && !graph_) {
        graph_ = device.capture(work, sent_.reserve(sent_bytes_), sent_bytes_);
        if (!graph_) is_ = state::never;
    }
    if (graph_) {
        graph_->start();
    } else {
        const std::size_t before = device.sent_bytes();
        work();
        sent_bytes_ = device.sent_bytes() - before;
        if (is_ == state::unknown) is_ = state::queued;
    }
    frees_ = device.frees();
}

}  // namespace mx::lab::cuda
