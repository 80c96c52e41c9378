// SPDX-License-Identifier: Apache-2.0
// Throughput of recipes on this machine and its memory bandwidth, measured in one run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "libmx/bench/device_throughput.hpp"
#include "libmx/bench/placed_rates.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::bench {

struct throughput_request {
    std::vector<codec::recipe> recipes;
    std::vector<const codec::backend*> backends;  ///< not empty
    std::vector<int> threads;                     ///< not empty, each at least 1
    tensor::dtype type = tensor::dtype::bf16;     ///< f32, bf16 or f16 (codec::is_stored)
    std::uint64_t elements = 0;                   ///< of the matrix; 0: see default_elements
    double seconds = 3;       ///< aimed at for each backend and thread count, warming up left out
    bool histograms = false;  ///< measure every recipe with histograms too
    bool together = false;    ///< measure all recipes in one pass too
    std::vector<engine::tensor_ref>
        files;  ///< analyse these too, every recipe in a pass of its own
};

/// The best of all passes, in bytes per second.
struct bandwidth {
    int threads;
    double read;
    double copy;  ///< bytes read and bytes written together
};

/// One recipe, or all of them in one pass.
struct throughput_row {
    std::vector<std::size_t> recipes;  ///< indices into the request
    const codec::backend* backend;
    int threads;
    bool histograms;
    double elements_per_second;  ///< of the matrix, best of all passes
    double fraction;             ///< bytes of the matrix per second, of bandwidth::read
    /// Time of the pass divided by the total time of separate passes for each recipe; 1 for one
    /// recipe.
    double of_separate_passes;
};

struct throughput {
    std::uint64_t elements;                  ///< of the matrix
    std::uint64_t memory;                    ///< bytes that bandwidths were measured over
    std::vector<bandwidth> bandwidths;       ///< one per thread count
    std::vector<throughput_row> rows;        ///< by thread count, backend, then recipe
    std::vector<device_throughput> devices;  ///< of backends that have one
    /// By location of the values. From memory: for backends with a device, the rows above again.
    std::vector<placed_rate> placed;
};

/// Times analyze_matrix over normally distributed values, measure_device on each device, and
/// analyze over files, if requested. Throws base::error (cancelled) soon after `cancel` is set.
throughput measure_throughput(const throughput_request& request, const std::atomic<bool>* cancel,
                              const std::function<void(const engine::progress&)>& on_progress);

}  // namespace mx::bench
