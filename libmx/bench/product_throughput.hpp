// SPDX-License-Identifier: Apache-2.0
// Throughput of emulated matrix products on this machine.
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

/// Backends on a device are compared with the fastest CPU backend with this number of threads, in
/// the same run.
inline constexpr int processor_threads = 2;

/// The operands of a model: both in the first format that it takes, fp8 before fp6 and fp4, with
/// the finest scales that it takes.
struct product_operands {
    const gemm::operand_format* format = nullptr;
    const gemm::operand_scale* scale = nullptr;  ///< null: none
};
product_operands operands_for(const gemm::accumulator& m);

/// Uniformly distributed finite codes (close to one in formats with float32's exponents), with
/// scales close to one.
gemm::operand make_operand(const product_operands& of, std::size_t rows, std::size_t depth,
                           std::uint32_t seed);

struct product_rate {
    std::size_t model;  ///< index into the request
    const gemm::backend* backend;
    int threads;
    bool by_kernels;                  ///< false: the plain loop, whatever the backend
    double multiply_adds_per_second;  ///< best of all passes
    /// Multiple of the CPU's rate (processor_threads); 0 for CPU backends.
    double times_processor = 0;
};

/// Sets times_processor for every backend on a device: its rate divided by that of the fastest CPU
/// backend with processor_threads for the same model.
void compare_with_processor(std::vector<product_rate>& rates);

/// Times gemm::multiply with such operands; the time hardly depends on the codes. Passes of all
/// models alternate. Results are ordered by thread count, backend, then model. If a backend has a
/// device and no CPU backend is requested with processor_threads, the fastest CPU backend is added
/// first. Throws base::error (cancelled) soon after `cancel` is set.
std::vector<product_rate> measure_product_throughput(
    const product_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress);

}  // namespace mx::bench
