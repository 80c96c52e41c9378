// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/machine.hpp"

#include <algorithm>

#include "libmx/base/parallel.hpp"
#include "libmx/codec/backends.hpp"

namespace mx::lab {

machine::machine(int threads, std::string_view backend)
    : kernels_(&simd::named(backend)), threads_(base::thread_count(threads)) {
    const codec::backend& by = codec::backend_named(kernels_->name);
    for (int i = 0; i < threads_; ++i) quantizers_.push_back(by.make_quantizer());
}

void machine::split(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t, std::size_t, int)>& body) const {
    if (threads_ == 1 || count <= grain) return body(0, count, 0);
    // Several parts per thread balance the load.
    const std::size_t parts = static_cast<std::size_t>(threads_) * 4;
    const std::size_t step = ((count + parts - 1) / parts + grain - 1) / grain * grain;
    base::parallel_for((count + step - 1) / step, threads_, nullptr,
                       [&](std::uint64_t i, int thread) {
                           const std::size_t begin = static_cast<std::size_t>(i) * step;
                           body(begin, std::min(count, begin + step), thread);
                       });
}

codec::quantizer& machine::quantizer(int thread) {
    return *quantizers_[static_cast<std::size_t>(thread)];
}

}  // namespace mx::lab
