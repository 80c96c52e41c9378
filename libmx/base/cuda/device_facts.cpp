// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_facts.hpp"

#include <cuda_runtime.h>

#include "libmx/base/cuda/device_memory.hpp"

namespace mx::base::cuda {
namespace {

// Virtual devices need not tell their clocks: 0 then.
int megahertz(cudaDeviceAttr which) {
    int kilohertz = 0;
    if (cudaDeviceGetAttribute(&kilohertz, which, 0) == cudaSuccess) return kilohertz / 1000;
    cudaGetLastError();
    return 0;
}

}  // namespace

device_facts facts_of_device() {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, 0), "asking what the card is");
    device_facts f;
    f.name = p.name;
    f.major = p.major;
    f.minor = p.minor;
    f.multiprocessors = p.multiProcessorCount;
    f.clock_mhz = megahertz(cudaDevAttrClockRate);
    f.memory_clock_mhz = megahertz(cudaDevAttrMemoryClockRate);
    f.memory_bus_bits = p.memoryBusWidth;
    f.memory = p.totalGlobalMem;
    f.l2_cache = static_cast<std::uint64_t>(p.l2CacheSize);
    check(cudaDriverGetVersion(&f.driver), "asking for the driver's version");
    check(cudaRuntimeGetVersion(&f.runtime), "asking for the runtime's version");
    return f;
}

}  // namespace mx::base::cuda
