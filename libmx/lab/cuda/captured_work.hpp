// SPDX-License-Identifier: Apache-2.0
// Work on a device that is queued again and again, as a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/lab/cuda/device_arrays.hpp"

namespace mx::lab::cuda {

/// Work that is the same each time. The first time it is queued; the second time it is captured in
/// a graph, and from then on one launch of the graph takes the place of all its kernels.
class captured_work {
  public:
    /// Queues what `work` queues; calls it unless there is a graph. Its memory must be the same
    /// each time: if any was freed on the device since the last time, it counts as the first. Work
    /// that no graph can contain (watched_device::capture) is queued every time. Throws as `work`
    /// does, and base::cuda::out_of_memory if there is no room for what it sends.
    void run(device_arrays& on, const std::function<void()>& work);
    /// The next time is the first.
    void forget() noexcept;

  private:
    enum class state : std::uint8_t { unknown, queued, never };

    device_arrays* on_ = nullptr;
    state is_ = state::unknown;
    std::uint64_t frees_ = 0;     // of the device, at the end of the last time
    std::size_t sent_bytes_ = 0;  // by the work
    device_memory sent_;
    std::unique_ptr<base::cuda::graph> graph_;
};

}  // namespace mx::lab::cuda
