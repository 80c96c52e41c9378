// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/stopwatch.hpp"

#include <cuda_runtime.h>

#include "libmx/base/cuda/device_memory.hpp"

namespace mx::base::cuda {
namespace {

cudaEvent_t event(void* handle) { return static_cast<cudaEvent_t>(handle); }

void* make_event() {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "making an event");
    return made;
}

}  // namespace

stopwatch::stopwatch() : start_(make_event()) {
    try {
        stop_ = make_event();
    } catch (...) {
        cudaEventDestroy(event(start_));
        throw;
    }
}

stopwatch::~stopwatch() {
    cudaEventDestroy(event(start_));
    cudaEventDestroy(event(stop_));
}

void stopwatch::start(void* stream) {
    check(cudaEventRecord(event(start_), static_cast<cudaStream_t>(stream)), "starting a clock");
}

double stopwatch::stop(void* stream) {
    check(cudaEventRecord(event(stop_), static_cast<cudaStream_t>(stream)), "stopping a clock");
    check(cudaEventSynchronize(event(stop_)), "running the kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event(start_), event(stop_)), "reading a clock");
    return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace mx::base::cuda
