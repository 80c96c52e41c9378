// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/routing.hpp"

#include <algorithm>
#include <numeric>

namespace mx::lab {

void routing::choose(execution_context& on, const routing_rule& rule, float* scores,
                     std::size_t tokens) {
    rule_ = rule;
    tokens_ = tokens;
    probabilities_ = scores;
    on.run(jobs::softmax{{rule.count}, false, 1.0f, scores}, tokens);
    if (on.device() != nullptr) on.note_copies("choices of experts");
    const std::vector<float> here =
        fetched(on, std::span<const float>(scores, tokens * rule.count));

    // The choices of a token in the order of the experts, then rows in that of experts and tokens.
    std::vector<std::uint32_t> chosen(tokens * rule.used), order(rule.count);
    first_.assign(rule.count + 1, 0);
    for (std::size_t t = 0; t < tokens; ++t) {
        const float* const p = here.data() + t * rule.count;
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) { return p[i] > p[j]; });
        std::uint32_t* const own = chosen.data() + t * rule.used;
        std::copy_n(order.begin(), rule.used, own);
        std::sort(own, own + rule.used);
        for (std::size_t i = 0; i < rule.used; ++i) ++first_[own[i] + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    expert_of_.resize(chosen.size());
    token_of_.resize(chosen.size());
    rows_of_.resize(chosen.size());
    weights_.resize(chosen.size());
    sums_.resize(tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
        const float* const p = here.data() + t * rule.count;
        const std::uint32_t* const own = chosen.data() + t * rule.used;
        double& sum = sums_[t] = rule.renormalized ? 0 : 1;
        for (std::size_t i = 0; i < rule.used && rule.renormalized; ++i) {
            sum += static_cast<double>(p[own[i]]);
        }
        for (std::size_t i = 0; i < rule.used; ++i) {
            const std::size_t row = next[own[i]]++;
            expert_of_[row] = own[i];
            token_of_[row] = static_cast<std::uint32_t>(t);
            rows_of_[t * rule.used + i] = static_cast<std::uint32_t>(row);
            weights_[row] = static_cast<float>(static_cast<double>(p[own[i]]) / sum);
        }
    }
    token_.put(on, token_of_);
    rows_there_.put(on, rows_of_);
    weight_.put(on, weights_);
}

void routing::spread(const execution_context& on, const float* x, std::size_t width, bool weighted,
                     float* rows) const {
    on.run(jobs::look_up{{width}, x, token_.data(), rows, weighted ? weight_.data() : nullptr},
           this->rows());
}

void routing::collect(const execution_context& on, const float* rows, std::size_t width,
                      bool weighted, float* y) const {
    const float* const weight = weighted ? weight_.data() : nullptr;
    on.run(jobs::sum_groups{{width}, rule_.used, rows, y, rows_there_.data(), weight}, tokens_);
}

void routing::scores_backward(execution_context& on, const float* outputs, const float* gradients,
                              std::size_t width, float* d_scores) {
    on.run(jobs::row_dots{{width}, outputs, gradients, dots_.reserve(on, rows())}, rows());
    const std::vector<double> dots = dots_.get(on, rows());  // gradients of the weights

    std::vector<float> gradient(tokens_ * rule_.count);  // of the probabilities
    for (std::size_t e = 0; e < rule_.count; ++e) {
        const auto share = static_cast<double>(first_[e + 1] - first_[e]) /
                           static_cast<double>(std::max<std::size_t>(rows(), 1));
        const auto term = static_cast<float>(static_cast<double>(rule_.balance) *
                                             static_cast<double>(rule_.count) * share /
                                             static_cast<double>(tokens_));
        for (std::size_t t = 0; t < tokens_; ++t) gradient[t * rule_.count + e] = term;
    }
    for (std::size_t t = 0; t < tokens_; ++t) {
        const std::uint32_t* const own = rows_of_.data() + t * rule_.used;
        double mean = 0;  // of dots, by weight
        for (std::size_t i = 0; i < rule_.used && rule_.renormalized; ++i) {
            mean += dots[own[i]] * static_cast<double>(weights_[own[i]]);
        }
        for (std::size_t i = 0; i < rule_.used; ++i) {
            float& to = gradient[t * rule_.count + expert_of_[own[i]]];
            to = static_cast<float>(static_cast<double>(to) + (dots[own[i]] - mean) / sums_[t]);
        }
    }
    send(on, std::span<const float>(gradient), d_scores);
    on.run(jobs::softmax_back{{rule_.count}, false, 1.0f, probabilities_, d_scores}, tokens_);
}

}  // namespace mx::lab
