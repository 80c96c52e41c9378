// SPDX-License-Identifier: Apache-2.0
// How fast emulated matrix products go on this machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::bench {

struct product_throughput_request {
    std::vector<gemm::accumulator> models;
    std::vector<const gemm::backend*> backends;  ///< not empty
    std::vector<int> threads;                    ///< not empty, each at least 1
    std::size_t rows = 1024;                     ///< of A at most; fewer where time is short
    std::size_t columns = 1024;
    std::size_t depth = 2048;
    double seconds = 3;  ///< aimed at for each backend and thread count, warming up left out
};

/// What backends on a device are compared with, in the same run: the fastest backend of the
/// processor with as many threads.
inline constexpr int processor_threads = 2;

/// What a model is measured with: both operands in the first format that it takes, fp8 before fp6
/// and fp4, under the finest scales that it takes.
struct product_operands {
    const gemm::operand_format* format = nullptr;
    const gemm::operand_scale* scale = nullptr;  ///< null: none
};
product_operands operands_for(const gemm::accumulator& m);

/// Finite codes that are all alike likely (near one in formats with float32's exponents), under
/// scales near one.
gemm::operand make_operand(const product_operands& of, std::size_t rows, std::size_t depth,
                           std::uint32_t seed);

struct product_rate {
    std::size_t model;  ///< index into the request
    const gemm::backend* backend;
    int threads;
    bool by_kernels;                  ///< false: the plain loop, whatever the backend
    double multiply_adds_per_second;  ///< best of all passes
    /// Times the processor's rate (processor_threads); 0 for backends of the processor.
    double times_processor = 0;
};

/// Fills in times_processor: of every backend on a device, the rate of the same model by a backend
/// of the processor with processor_threads; the fastest one where there are several.
void compare_with_processor(std::vector<product_rate>& rates);

/// Runs gemm::multiply over such operands; what the codes are hardly matters to the time. Passes of
/// all models take turns. By thread count, backend, then model; where a backend has a device and
/// none of the processor is asked for with processor_threads, its fastest comes first. Throws
/// base::error (cancelled) soon after `cancel` is raised.
std::vector<product_rate> measure_product_throughput(
    const product_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress);

}  // namespace mx::bench
