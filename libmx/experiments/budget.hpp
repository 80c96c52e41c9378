// SPDX-License-Identifier: Apache-2.0
// What a budget of time buys: sizes, steps and seeds, from the budget and a stated model of cost
// alone. The clock is never read, so that a budget means the same study on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/experiments/study.hpp"
#include "libmx/lab/request.hpp"

namespace mx::experiments {

/// What the model takes for granted.
inline constexpr double model_cores = 2;
inline constexpr double model_flop = 2e10;       ///< of products, a core and second
inline constexpr double model_elements = 1.5e8;  ///< quantized, a core and second
inline constexpr std::uint64_t wanted_seeds = 5, most_seeds = 32;

/// "90s", "10m", "1.5h", or seconds. Throws base::error (usage).
double parse_duration(const std::string& text);

/// Seconds of one core that the training takes under the model. Of the proxy, products of 48 B d^2
/// L floating-point operations a step and 20 B d L + 16 d^2 L elements of operands; of language
/// models the operations that `mx train --dry-run` shows, and each operand of a linear layer twice.
double cost_of(const lab::run_request& r);

/// What is trained, once for each seed: settings and when they begin. Configurations share runs.
struct distinct_run {
    std::string settings, before;  ///< `before` holds until `from` of the steps are done
    double from = 0;
    friend bool operator==(const distinct_run&, const distinct_run&) = default;
};
std::vector<distinct_run> runs_of(const std::vector<configuration>& configurations);

struct sized {
    lab::run_request request;  ///< of a language model, before lab::fit_schedule()
    std::vector<std::uint64_t> seeds;
};

/// The largest size of the model (proxy, olmo or llama) of which the budget bears five seeds, or
/// else the smallest one with as many seeds as it bears, and as many seeds as fit up to 32. Throws
/// base::error (usage) for another model, or where there would be fewer than two seeds.
sized size_for(const std::string& model, std::size_t runs, double seconds);

}  // namespace mx::experiments
