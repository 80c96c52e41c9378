// SPDX-License-Identifier: Apache-2.0
// Fits scaling laws to runs. Reports bootstrap intervals, predictions, and how well runs with
// little compute predict runs with much.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "libmx/studies/fit/law.hpp"

namespace mx::fit {

struct fit_request {
    form is = form::chinchilla;
    bool sum = false;         ///< the objective is the sum over the runs, not their mean
    double threshold = 1e-3;  ///< of Huber's loss, in log loss
    std::uint64_t resamples = 200;
    std::uint64_t seed = 1;
    std::vector<double> compute;                    ///< FLOP to spend best
    std::vector<std::pair<double, double>> points;  ///< N and D to predict the loss of
    int threads = 0;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void()> on_fit;  ///< called after each fit to a resample, from any thread
};

/// A value with the central 95 % of the bootstrap resamples.
struct estimate {
    double value = 0;
    std::optional<double> low, high;
};

/// The prediction of a law for a model size; for the best size at its compute if `compute` is set.
struct prediction {
    std::optional<double> compute;
    std::vector<double> bits;  ///< by runs::bits
    estimate n, d, loss;
    bool beyond = false;  ///< of the runs: more compute than any
};

/// The runs with the most compute, predicted from the others.
struct prediction_check {
    std::size_t from = 0, of = 0;  ///< runs
    double compute = 0;            ///< FLOP: the least of the predicted runs
    double mean_error = 0;         ///< mean of predicted / measured - 1
    double mean_abs_error = 0, largest_abs_error = 0;
};

struct residual {
    double predicted = 0;
    double log_ratio = 0;  ///< log(measured / predicted)
    bool far = false;      ///< above the law by more than 5 robust standard deviations
};

struct fitted {
    coefficients of;
    double objective = 0;
    std::size_t starts = 0, reached = 0;  ///< starts from which the least objective was reached
    std::size_t resamples = 0;            ///< that the intervals are of
    estimate a, b, e, alpha, beta, c_post, gamma_d, gamma_n, gamma_post;
    std::vector<estimate> gamma;
    estimate g, n_exponent, d_exponent;  ///< of optimum_of, at full precision
    double spread = 0;                   ///< robust standard deviation of the log ratios
    std::vector<residual> residuals;     ///< by run
    std::vector<prediction> predictions;
    std::optional<prediction_check> check;
};

/// Fits the law to the runs `some` of `all`: minimizes the Huber loss of log loss with L-BFGS from
/// every start of a grid. Throws base::error (input) unless there are more runs than coefficients
/// and both N and D vary. The result is the same for any number of threads.
fitted fit_law(const runs& all, std::span<const run> some, const fit_request& request);

}  // namespace mx::fit
