// SPDX-License-Identifier: Apache-2.0
// What a device says of itself.
#pragma once

#include <cstdint>
#include <string>

namespace mx::base::cuda {

struct device_facts {
    std::string name;
    int major = 0, minor = 0;  ///< compute capability: 9, 0 is sm_90
    int multiprocessors = 0;   ///< SMs
    int clock_mhz = 0;         ///< of the SMs at most, 0 where the driver does not tell
    int memory_clock_mhz = 0;  ///< the same of its memory
    int memory_bus_bits = 0;
    std::uint64_t memory = 0;     ///< bytes
    std::uint64_t l2_cache = 0;   ///< bytes
    int driver = 0, runtime = 0;  ///< CUDA's version numbers: 13000 is 13.0
};

/// The first device's. Throws base::error (unavailable) without one.
device_facts facts_of_device();

}  // namespace mx::base::cuda
