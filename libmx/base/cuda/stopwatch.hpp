// SPDX-License-Identifier: Apache-2.0
// How long a device takes for what is queued on a stream, by the device's own clock.
#pragma once

#include "libmx/base/cuda/device_memory.hpp"

namespace mx::base::cuda {

class stopwatch {
  public:
    stopwatch();
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;
    ~stopwatch();

    void start(const stream& s);
    /// Waits for what was queued since start(). Seconds, to within half a microsecond.
    double stop(const stream& s);

  private:
    void* start_ = nullptr;
    void* stop_ = nullptr;
};

}  // namespace mx::base::cuda
