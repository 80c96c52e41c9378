// SPDX-License-Identifier: Apache-2.0
// How fast a device goes through values that lie in its memory, next to how fast that memory is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "libmx/bench/placed_rates.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::bench {

/// Best of all passes, in bytes per second.
struct device_bandwidth {
    double read;
    double copy;    ///< bytes read and bytes written together
    double pinned;  ///< from pinned memory of the host to the device
};

struct device_throughput {
    base::cuda::device_facts device;
    std::uint64_t memory;    ///< bytes of the device that bandwidths were measured over
    std::uint64_t elements;  ///< of the matrix there
    device_bandwidth bandwidth;
    std::vector<placed_rate> rates;  ///< by recipe, sums before codes; none of rotated recipes
};

struct device_request {
    const std::vector<codec::recipe>& recipes;
    const codec::backend& backend;  ///< one with a meter
    tensor::dtype type;
    double seconds;
};

/// Kernels over a matrix of 4096 columns of normally distributed values that fills the memory
/// measured with, one launch a pass. Passes of a recipe and of plain reading and copying take
/// turns. `on_share` is told the part done, 0 to 1. Throws base::error: unavailable when the device
/// fails or has no room, cancelled soon after `cancel` is raised.
device_throughput measure_device(codec::device_meter& meter, const device_request& request,
                                 const std::atomic<bool>* cancel,
                                 const std::function<void(double)>& on_share);

}  // namespace mx::bench
