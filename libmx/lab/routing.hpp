// SPDX-License-Identifier: Apache-2.0
// A mixture of experts: which tokens each expert gets, and with which weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libmx/lab/array.hpp"
#include "libmx/lab/execution_context.hpp"

namespace mx::lab {

/// Each token goes to the `used` experts of `count` with the largest probabilities, the first of
/// equals: the softmax of its scores. Its output is the sum of theirs, times their probabilities;
/// `renormalized`: divided by the sum of the chosen ones. Probabilities and weights are float32.
struct routing_rule {
    std::size_t count = 0;  ///< 0: no experts
    std::size_t used = 0;   ///< at least 1
    bool renormalized = true;
    /// The gradient of the scores is that of the loss plus `balance` count sum_e f_e P_e, where f_e
    /// is the share of choices that expert e got, a constant, and P_e its mean probability: the
    /// term that keeps experts evenly used (Fedus et al., arXiv 2101.03961, section 2.2).
    float balance = 0;

    friend bool operator==(const routing_rule&, const routing_rule&) = default;
};

/// The choices of one layer and batch. A token has `used` rows, one at each expert that it chose;
/// rows are sorted by expert, those of an expert by token. Arrays are where the context computes;
/// choices are made on the host.
class routing {
  public:
    /// Chooses by `scores` (tokens x count), which become probabilities. If a score is NaN or +Inf,
    /// the token goes to the first experts, with weights of NaN.
    void choose(execution_context& on, const routing_rule& rule, float* scores, std::size_t tokens);

    std::size_t rows() const { return expert_of_.size(); }
    /// The first row of an expert; of expert `count`, the number of rows.
    std::size_t first_row(std::size_t expert) const { return first_[expert]; }

    /// Rows of experts from those of tokens, and the sum of a token's rows in the order of the
    /// experts; `weighted`: times their weights.
    void spread(const execution_context& on, const float* x, std::size_t width, bool weighted,
                float* rows) const;
    void collect(const execution_context& on, const float* rows, std::size_t width, bool weighted,
                 float* y) const;

    /// The gradient of the scores from the outputs of experts and the gradients of the sums of
    /// these, by row and without weights.
    void scores_backward(execution_context& on, const float* outputs, const float* gradients,
                         std::size_t width, float* d_scores);

  private:
    routing_rule rule_;
    std::size_t tokens_ = 0;
    const float* probabilities_ = nullptr;
    std::vector<std::uint32_t> expert_of_;  // by row
    std::vector<std::uint32_t> token_of_;   // by row
    std::vector<std::uint32_t> rows_of_;    // by token and choice, in the order of the experts
    std::vector<float> weights_;            // by row
    std::vector<double> sums_;              // by token, what probabilities were divided by
    std::vector<std::size_t> first_;        // by expert
    array_of<std::uint32_t> token_, rows_there_;
    array weight_;
    array_of<double> dots_;
};

}  // namespace mx::lab
