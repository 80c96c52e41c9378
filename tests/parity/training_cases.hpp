// SPDX-License-Identifier: Apache-2.0
// Test cases for training runs on a device, run on the device and on the host instead of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libmx/lab/cuda/device_arrays.hpp"

namespace mx::tests {

/// Called with a description and the difference, "" if there is none.
using case_judge = std::function<void(const std::string&, const std::string&)>;
using arrays_maker = std::function<std::unique_ptr<lab::cuda::device_arrays>()>;

/// Compares products with chains of std::fma, bit for bit: one tile, several, and parts of one, of
/// many depths, with both operands as they are and transposed; ordinary numbers, numbers whose
/// products underflow, and NaN, Inf and subnormals. One case in `every`.
void compare_products(const arrays_maker& make, std::uint64_t every, const case_judge& on_case);

/// Queues products, one beside the other, and what adds them up, five times, of which all but the
/// first should be launches of a graph, and compares the sums with those of the CPU.
void compare_graphs(const arrays_maker& make, const case_judge& on_case);

/// Compares the files of short training runs (checkpoint, dump of a step, losses, probes) with
/// those of the CPU, byte for byte: every named scheme, recipes of every kind, every option of the
/// network and of the update, runs that diverge, language models. One case in `every`.
void compare_trainings(const arrays_maker& make, std::uint64_t every, const case_judge& on_case);

}  // namespace mx::tests
