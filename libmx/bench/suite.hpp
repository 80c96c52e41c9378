// SPDX-License-Identifier: Apache-2.0
// Times the code paths of mx alternately in one run: every group of recipes, and paths that the
// caller adds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/bench/throughput.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/engine/control.hpp"

namespace mx::bench {

/// A code path that processes the rows of a matrix.
struct suite_case {
    std::string group;             ///< its group: "rule", "dialect", "command", ...
    std::string name;              ///< a recipe, or a command with its options
    std::string_view backend;      ///< whose kernels do the work
    double reads = 0, writes = 0;  ///< bytes of memory for each element
    std::function<std::uint64_t(const analysis::matrix&)> pass;  ///< returns elements done
};

struct suite_request {
    tensor::dtype type = tensor::dtype::bf16;  ///< as in throughput_request
    std::uint64_t elements = 0;                ///< of the matrix; 0: see default_elements
    int threads = 1;                           ///< at least 1
    double seconds = 60;                       ///< aimed at, warming up left out
};

struct suite_rate {
    double elements_per_second = 0;  ///< best of all passes
    double of_first = 0;             ///< times the rate of the first path
    double of_read_bandwidth = 0;    ///< bytes read per second, of what this memory is read with
    /// Bytes read and written per second, as a fraction of the copy bandwidth; of the read
    /// bandwidth if nothing is written.
    double of_roof = 0;
};

struct suite_table {
    std::uint64_t elements = 0;  ///< of the matrix
    std::uint64_t memory = 0;    ///< bytes that bandwidths were measured over
    bandwidth machine{};
    std::vector<suite_rate> rates;  ///< by path
};

/// Completes a rate.
suite_rate rate_of(const suite_case& r, double elements_per_second, double first,
                   const bandwidth& b);

/// Times every path over normally distributed values. Paths alternate, each with as many rows as
/// fit its share of the time. Throws base::error (cancelled) soon after `cancel` is set.
suite_table measure_suite(const std::vector<suite_case>& cases, const suite_request& request,
                          const std::atomic<bool>* cancel,
                          const std::function<void(const engine::progress&)>& on_progress);

/// The analysis of each of suite_recipes(), starting with mxfp4, and of some of them with
/// histograms and with the parts of the squared error. Includes the pass that finds a tensor's
/// maximum if a recipe needs it. `control` must outlive the result.
std::vector<suite_case> recipe_cases(tensor::dtype type, const engine::run_control& control);

/// The backend that quantizes under `r` if `b` is requested: `b`, or "scalar".
std::string_view serving_backend(const codec::backend& b, const codec::recipe& r);

}  // namespace mx::bench
