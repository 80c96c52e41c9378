// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/model_throughput.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "libmx/bench/rounds.hpp"
#include "libmx/eval/evaluation.hpp"
#include "libmx/lab/product.hpp"

namespace mx::bench {
namespace {

struct evaluated_model {
    std::string_view what;
    std::string_view settings;  // "" for the model as it is
};
constexpr std::array evaluated{
    evaluated_model{"as it is, float32", ""},
    evaluated_model{"mxfp8", "all=mxfp8"},
    evaluated_model{"mxfp4", "all=mxfp4"},
    evaluated_model{"nvfp4", "all=nvfp4"},
    evaluated_model{"mxfp8, sm100.mxf8f6f4", "all=mxfp8 accumulate=sm100.mxf8f6f4"},
};

// Of a forward pass: linear layers, head, and the scores that are not masked.
double multiply_adds_of(const llm::model_weights& model, std::size_t tokens) {
    const llm::model_shape& s = model.shape();
    const auto n = static_cast<double>(tokens);
    double each = static_cast<double>(s.vocabulary) * static_cast<double>(s.width);
    for (std::size_t i = 0; i < s.depth; ++i) {
        for (const llm::place& p : model.linears(i)) {
            if (p.what >= llm::role::expert_gate && p.expert >= s.experts_used) continue;
            const tensor::shape shape = model.extents(p);
            each += static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
        }
        each += (n + 1) * static_cast<double>(s.query_width());
    }
    return n * each;
}

}  // namespace

std::vector<training_rate> measure_model_throughput(
    const model_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress) {
    const llm::model_weights model(request.model);
    const llm::model_shape& s = model.shape();
    const std::size_t tokens =
        s.context == 0 ? request.tokens : std::min(request.tokens, s.context);
    eval::evaluation_request r;
    for (std::size_t i = 0; i < tokens; ++i) {
        r.tokens.push_back(static_cast<std::uint32_t>(i * 7919 % s.vocabulary));
    }
    r.windows = eval::windows_of(tokens, tokens, tokens);
    r.cancel = cancel;
    std::array<std::vector<eval::arm>, evaluated.size()> arms;
    for (std::size_t i = 1; i < evaluated.size(); ++i) {
        eval::arm a;
        a.settings = lab::parse_settings(std::string(evaluated[i].settings));
        a.how = lab::precision_of(a.settings, eval::layers_of(model));
        arms[i].push_back(std::move(a));
    }
    const double work = multiply_adds_of(model, tokens);
    const std::vector<float> a(tokens * s.width, 1.25f), b(s.hidden * s.width, 0.75f);
    std::vector<float> c(tokens * s.hidden);
    const double product_work =
        static_cast<double>(tokens) * static_cast<double>(s.hidden) * static_cast<double>(s.width);
    part_progress progress(on_progress);
    progress.add_parts(request.threads.size());
    std::vector<training_rate> rates;
    for (const int threads : request.threads) {
        lab::execution_context with(threads, request.backend);
        lab::execution_context& on = with.host();
        std::optional<double> product;
        std::array<std::optional<double>, evaluated.size()> least;
        const auto keep = [](std::optional<double>& to, double took) {
            if (!to || took < *to) to = took;
        };
        take_turns(
            request.seconds, cancel, [&](double done) { progress.report(done); },
            [&] {
                for (int i = 0; i < 20; ++i) {
                    keep(product, seconds_of([&] {
                             lab::multiply(on, lab::operand_view{a.data(), tokens, s.width},
                                           lab::operand_view{b.data(), s.hidden, s.width},
                                           c.data());
                         }));
                }
                for (std::size_t i = 0; i < evaluated.size(); ++i) {
                    keep(least[i],
                         seconds_of([&] { (void)eval::evaluate(model, on, arms[i], r); }));
                }
            });
        rates.push_back({"a product of the MLP's shape", threads, product_work / *product, 0, 1});
        for (std::size_t i = 0; i < evaluated.size(); ++i) {
            const double took = *least[i], passes = i == 0 ? 1 : 2;
            rates.push_back({evaluated[i].what, threads, passes * work / took,
                             passes * static_cast<double>(tokens) / took, took / *least[0]});
        }
        progress.end_part();
    }
    return rates;
}

}  // namespace mx::bench
