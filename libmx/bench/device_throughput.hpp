// SPDX-License-Identifier: Apache-2.0
// Throughput of a device for values in its memory, compared with the bandwidth of that memory.
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

/// The best of all passes, in bytes per second.
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

/// Times kernels over a matrix of 4096 columns of normally distributed values that fills the
/// measured memory, one launch per pass. Passes of recipes alternate with plain reads and copies.
/// `on_share` receives the fraction done, 0 to 1. Throws base::error: unavailable if the device
/// fails or lacks memory, cancelled soon after `cancel` is set.
device_throughput measure_device(codec::device_meter& meter, const device_request& request,
                                 const std::atomic<bool>* cancel,
                                 const std::function<void(double)>& on_share);

}  // namespace mx::bench
