// SPDX-License-Identifier: Apache-2.0
// CUDA devices, by CUDA's runtime.
#pragma once

#include <cstdint>
#include <string>

#include "libmx/base/cuda/device.hpp"

namespace mx::base::cuda {

/// Throws base::error (unavailable) unless `code`, a cudaError_t, is success: what was done, the
/// message of the runtime, what to do. Out of memory is out_of_memory.
void check(int code, const char* what);

/// The first call starts the runtime. Freed memory is kept for later (pooled_device.hpp).
device& first_device();

/// A stream of the caller, a cudaStream_t of device `ordinal`, as a device: its memory is taken and
/// freed in the order of the stream, and its streams are this one. Throws base::error (unavailable)
/// while the stream is captured in a graph.
std::unique_ptr<device> device_of_stream(int ordinal, void* stream);

/// Makes device `ordinal` that of this thread for its lifetime.
class current_device {
  public:
    explicit current_device(int ordinal);
    current_device(const current_device&) = delete;
    current_device& operator=(const current_device&) = delete;
    ~current_device();

  private:
    int before_ = 0;
};

/// Properties of a device.
struct device_facts {
    std::string name;
    int major = 0, minor = 0;  ///< compute capability: 9, 0 is sm_90
    int multiprocessors = 0;   ///< SMs
    int clock_mhz = 0;         ///< largest of the SMs, 0 if the driver does not report it
    int memory_clock_mhz = 0;  ///< the same of its memory
    int memory_bus_bits = 0;
    std::uint64_t memory = 0;     ///< bytes
    std::uint64_t l2_cache = 0;   ///< bytes
    int driver = 0, runtime = 0;  ///< CUDA's version numbers: 13000 is 13.0
};

/// Of the first device. Throws base::error (unavailable) without one.
device_facts facts_of_device();

/// How long a device takes for work on a stream, by the device's own clock.
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

/// In a build without CUDA: throws base::error (unavailable) with missing() as message.
[[noreturn]] void refuse();

/// Whether this build has code for the current device: the runtime's error code, 0 when it has.
int has_code_for_device();

}  // namespace mx::base::cuda
