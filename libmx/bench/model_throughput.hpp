// SPDX-License-Identifier: Apache-2.0
// Throughput of evaluations of a language model on this machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/bench/training_throughput.hpp"

namespace mx::bench {

struct model_throughput_request {
    std::string model;         ///< as `mx eval`
    std::size_t tokens = 512;  ///< or as many as the model's context has
    std::vector<int> threads;  ///< not empty, each at least 1
    std::string_view backend;  ///< as in lab::execution_context, "" for the fastest
    double seconds = 3;        ///< aimed at for each thread count
};

/// Times a product of the shape of the model's MLP, an evaluation of the model as it is, weights
/// read from the file included, and evaluations of that and a recipe for weights and inputs side by
/// side. steps_per_second is tokens per second, of both passes. Throws base::error (cancelled) soon
/// after `cancel` is set, and as llm::model_weights does.
std::vector<training_rate> measure_model_throughput(
    const model_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress);

}  // namespace mx::bench
