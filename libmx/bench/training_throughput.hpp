// SPDX-License-Identifier: Apache-2.0
// Throughput of the training runs of the lab and of their products on this machine.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>
#include <vector>

#include "libmx/engine/control.hpp"

namespace mx::bench {

struct training_throughput_request {
    std::vector<int> threads;  ///< not empty, each at least 1
    std::string_view backend;  ///< as in lab::execution_context, "" for the fastest
    double seconds = 3;        ///< aimed at for each thread count
};

struct training_rate {
    std::string_view what;
    int threads = 1;
    double multiply_adds_per_second = 0;  ///< of the products; best of all passes
    double steps_per_second = 0;          ///< of all runs together; 0 for a product alone
    /// Time divided by that of the first row of the group with the same thread count; 1 for that
    /// row.
    double time_ratio = 1;
};

/// Times products of two shapes; steps of the proxy of width 512 (depth 4, batch 512) with all six
/// operands in float32, MXFP8, MXFP4 and NVFP4; and 32 concurrent seeds of width 64 (depth 4, batch
/// 64). Workloads with the same thread count alternate. Throws base::error (cancelled) soon after
/// `cancel` is set.
std::vector<training_rate> measure_training_throughput(
    const training_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress);

}  // namespace mx::bench
