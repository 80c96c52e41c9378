// SPDX-License-Identifier: Apache-2.0
// How long a device takes for what is queued on a stream, by the device's own clock.
#pragma once

namespace mx::base::cuda {

class stopwatch {
  public:
    stopwatch();
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;
    ~stopwatch();

    /// On a cudaStream_t.
    void start(void* stream);
    /// Waits for what was queued since start(). Seconds, to within half a microsecond.
    double stop(void* stream);

  private:
    void* start_ = nullptr;
    void* stop_ = nullptr;
};

}  // namespace mx::base::cuda
