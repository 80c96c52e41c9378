// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "libmx/base/statistics.hpp"
#include "libmx/base/student.hpp"
#include "libmx/eval/simd/kernels.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::eval {
namespace {

using report::declared;
using report::record;

constexpr std::size_t least_windows = 4;  // for an interval over windows
constexpr std::size_t most_changed = 10;  // tokens of a recipe

double mean_of(const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double stderr_of(const std::vector<double>& x) {
    if (x.size() < 2) return 0;
    const double mean = mean_of(x);
    double squares = 0;
    for (const double v : x) squares += (v - mean) * (v - mean);
    const auto n = static_cast<double>(x.size());
    return std::sqrt(squares / (n - 1) / n);
}

// Half of the interval of the mean over windows.
double interval_of(const evaluation& e, const std::vector<double>& by_token) {
    std::vector<double> sums(e.windows.size()), counts(e.windows.size());
    for (std::size_t t = 0; t < by_token.size(); ++t) {
        sums[e.window_of[t]] += by_token[t];
        counts[e.window_of[t]] += 1;
    }
    std::vector<double> means;
    for (std::size_t w = 0; w < sums.size(); ++w) {
        if (counts[w] > 0) means.push_back(sums[w] / counts[w]);
    }
    if (means.size() < least_windows) return 0;
    return base::estimate_of(means).interval.value_or(0);
}

std::vector<double> differences(const evaluation& e, const token_scores& of) {
    std::vector<double> all;
    for (std::size_t t = 0; t < of.nll.size(); ++t) all.push_back(of.nll[t] - e.base.nll[t]);
    return all;
}

// Whether the means of two arms differ by more than twice the standard error of the difference,
// token by token.
bool apart(const token_scores& a, const token_scores& b) {
    std::vector<double> d;
    for (std::size_t t = 0; t < a.nll.size(); ++t) d.push_back(a.divergence[t] - b.divergence[t]);
    return std::abs(mean_of(d)) > 2 * stderr_of(d);
}

struct row {
    const findings& of;
    const arm_description& words;
    summary s;
    bool ties_with_least;
};

constexpr std::array result_members{
    declared<row>{"recipe", "string", "as it was asked for",
                  [](const row& r) { return r.words.recipe; }},
    declared<row>{"weights", "string", "recipe of the weights of linear layers",
                  [](const row& r) { return r.words.weights; }},
    declared<row>{"activations", "string", "recipe of the inputs of linear layers",
                  [](const row& r) { return r.words.activations; }},
    declared<row>{"kv", "string", "recipe of cached keys and values",
                  [](const row& r) { return r.words.kv; }},
    declared<row>{"attention", "string", "recipe of the operands of attention's products",
                  [](const row& r) { return r.words.attention; }},
    declared<row>{"tokens", "count", "scored tokens", [](const row& r) { return r.s.tokens; }},
    declared<row>{"windows", "count", "", [](const row& r) { return r.s.windows; }},
    declared<row>{"cross_entropy", "amount", "nats a token",
                  [](const row& r) { return r.s.cross_entropy; }},
    declared<row>{"perplexity", "amount", "exp of it",
                  [](const row& r) { return simd::exponential(r.s.cross_entropy); }},
    declared<row>{"perplexity_base", "amount", "of the model as it is",
                  [](const row& r) { return simd::exponential(r.s.cross_entropy_base); }},
    declared<row>{
        "perplexity_ratio", "amount", "perplexity / perplexity_base",
        [](const row& r) { return simd::exponential(r.s.cross_entropy - r.s.cross_entropy_base); }},
    declared<row>{"delta_mean", "number", "difference of cross-entropy, nats a token",
                  [](const row& r) { return r.s.cross_entropy - r.s.cross_entropy_base; }},
    declared<row>{"delta_stderr", "amount", "its standard error, tokens taken as independent",
                  [](const row& r) { return r.s.delta_stderr; }},
    declared<row>{"delta_interval", "positive?",
                  "half of its 95 % interval, windows as units; null below 4 windows",
                  [](const row& r) -> report::value {
                      return r.s.delta_interval > 0 ? report::value(r.s.delta_interval)
                                                    : report::value();
                  }},
    declared<row>{"kld_mean", "number",
                  "divergence KL(P || Q) from the model as it is, nats a token",
                  [](const row& r) { return r.s.kld_mean; }},
    declared<row>{"kld_stderr", "amount", "its standard error, tokens taken as independent",
                  [](const row& r) { return r.s.kld_stderr; }},
    declared<row>{"kld_interval", "positive?",
                  "half of its 95 % interval, windows as units; null below 4 windows",
                  [](const row& r) -> report::value {
                      return r.s.kld_interval > 0 ? report::value(r.s.kld_interval)
                                                  : report::value();
                  }},
    declared<row>{"kld_median", "number", "", [](const row& r) { return r.s.kld_median; }},
    declared<row>{"kld_p99", "number", "99 % of the tokens are below",
                  [](const row& r) { return r.s.kld_p99; }},
    declared<row>{"kld_max", "number", "", [](const row& r) { return r.s.kld_max; }},
    declared<row>{"kld_max_token", "count", "scored token with that divergence, from 0",
                  [](const row& r) { return r.s.kld_max_token; }},
    declared<row>{"ties_with_least", "boolean",
                  "whether kld_mean is within twice the standard error of its difference from the "
                  "least one",
                  [](const row& r) { return r.ties_with_least; }},
    declared<row>{"top1_agreement", "share", "tokens with the same most probable token",
                  [](const row& r) { return r.s.top1_agreement; }},
    declared<row>{"probability_rms", "share", "RMS change of the probability of the text's token",
                  [](const row& r) { return r.s.probability_rms; }},
    declared<row>{"bits_per_weight", "amount",
                  "bits of the whole model a parameter; what has no recipe as in the file",
                  [](const row& r) { return r.words.bits_per_weight; }},
    declared<row>{"model_bytes", "count", "of the whole model",
                  [](const row& r) {
                      return static_cast<std::uint64_t>(std::ceil(
                          r.words.bits_per_weight * static_cast<double>(r.of.parameters) / 8));
                  }},
};

constexpr std::array part_tensor_members{
    declared<part_tensor>{"tensor", "string", "", [](const part_tensor& t) { return t.tensor; }},
    declared<part_tensor>{"dtype", "string", "", [](const part_tensor& t) { return t.dtype; }},
    declared<part_tensor>{"shape", "[count]", "",
                          [](const part_tensor& t) { return report::to_list(t.shape); }},
    declared<part_tensor>{"elements", "count", "", [](const part_tensor& t) { return t.elements; }},
    declared<part_tensor>{"bits", "count", "under the recipe, scales included",
                          [](const part_tensor& t) { return t.bits; }},
    declared<part_tensor>{"stored_bits", "count", "in the file",
                          [](const part_tensor& t) { return t.stored_bits; }},
};
report::list written_tensors(const std::vector<part_tensor>& all) {
    return report::to_list(
        all, [](const part_tensor& t) { return report::written(part_tensor_members, t); });
}

struct part_row {
    const part_result& p;
};
constexpr std::array part_members{
    declared<part_row>{"recipe", "string", "", [](const part_row& r) { return r.p.recipe; }},
    declared<part_row>{"level", "layer|block|kind|tensor", "",
                       [](const part_row& r) { return r.p.level; }},
    declared<part_row>{"part", "string", "", [](const part_row& r) { return r.p.part; }},
    declared<part_row>{"only_kld", "number", "mean divergence with this part quantized alone",
                       [](const part_row& r) { return r.p.only_kld; }},
    declared<part_row>{"only_delta", "number", "difference of cross-entropy",
                       [](const part_row& r) { return r.p.only_delta; }},
    declared<part_row>{"only_top1_agreement", "share", "",
                       [](const part_row& r) { return r.p.only_agreement; }},
    declared<part_row>{"without_kld", "number", "mean divergence with all but this part quantized",
                       [](const part_row& r) { return r.p.without_kld; }},
    declared<part_row>{"without_delta", "number", "difference of cross-entropy",
                       [](const part_row& r) { return r.p.without_delta; }},
    declared<part_row>{"all_kld", "number", "mean divergence with everything quantized",
                       [](const part_row& r) { return r.p.all_kld; }},
    declared<part_row>{"tensors", "[#part_tensor]", "whose weights it quantizes",
                       [](const part_row& r) { return written_tensors(r.p.tensors); }},
};

struct sensitivity_row {
    const sensitivity_result& s;
};
constexpr std::array sensitivity_members{
    declared<sensitivity_row>{"recipe", "string", "",
                              [](const sensitivity_row& r) { return r.s.recipe; }},
    declared<sensitivity_row>{"level", "layer|block|kind|tensor", "",
                              [](const sensitivity_row& r) { return r.s.level; }},
    declared<sensitivity_row>{"part", "string", "",
                              [](const sensitivity_row& r) { return r.s.part; }},
    declared<sensitivity_row>{"predicted_kld", "amount",
                              "mean divergence that the gradient predicts with this part quantized "
                              "alone",
                              [](const sensitivity_row& r) { return r.s.predicted; }},
    declared<sensitivity_row>{"only_kld", "number?", "what it is; null where it was not evaluated",
                              [](const sensitivity_row& r) { return r.s.measured; }},
};

struct pair_row {
    const pair_result& p;
};
constexpr std::array pair_members{
    declared<pair_row>{"recipe", "string", "", [](const pair_row& r) { return r.p.recipe; }},
    declared<pair_row>{"first", "string", "", [](const pair_row& r) { return r.p.first; }},
    declared<pair_row>{"second", "string", "", [](const pair_row& r) { return r.p.second; }},
    declared<pair_row>{"first_kld", "number", "", [](const pair_row& r) { return r.p.first_kld; }},
    declared<pair_row>{"second_kld", "number", "",
                       [](const pair_row& r) { return r.p.second_kld; }},
    declared<pair_row>{"both_kld", "number", "", [](const pair_row& r) { return r.p.both_kld; }},
    declared<pair_row>{
        "interaction", "number", "both_kld - first_kld - second_kld",
        [](const pair_row& r) { return r.p.both_kld - r.p.first_kld - r.p.second_kld; }},
};

struct layer_row {
    const findings& of;
    const layer_error& e;
};
constexpr std::array layer_members{
    declared<layer_row>{"layer", "string", "", [](const layer_row& r) { return r.e.layer; }},
    declared<layer_row>{"recipe", "string", "",
                        [](const layer_row& r) { return r.of.arms[r.e.arm].recipe; }},
    declared<layer_row>{"rel_sq_error_w", "amount",
                        "squared error of the output over its squared norm, weights quantized",
                        [](const layer_row& r) { return r.e.of_weights; }},
    declared<layer_row>{"rel_sq_error_wa", "amount", "weights and inputs quantized",
                        [](const layer_row& r) { return r.e.of_both; }},
};

struct changed_token {
    const findings& of;
    std::size_t arm, token;
};
constexpr std::array changed_members{
    declared<changed_token>{"recipe", "string", "",
                            [](const changed_token& c) { return c.of.arms[c.arm].recipe; }},
    declared<changed_token>{"token", "count", "of the scored tokens, from 0",
                            [](const changed_token& c) { return c.token; }},
    declared<changed_token>{"id", "count", "the token that the text has",
                            [](const changed_token& c) { return c.of.of.predicted[c.token]; }},
    declared<changed_token>{"piece", "string?", "its text, where the tokenizer is known",
                            [](const changed_token& c) -> report::value {
                                if (c.of.pieces.empty()) return {};
                                return c.of.pieces[c.token];
                            }},
    declared<changed_token>{
        "kld", "number", "divergence at this token",
        [](const changed_token& c) { return c.of.of.arms[c.arm].divergence[c.token]; }},
    declared<changed_token>{"nll_base", "amount", "-ln of its probability in the model as it is",
                            [](const changed_token& c) { return c.of.of.base.nll[c.token]; }},
    declared<changed_token>{
        "nll", "amount", "under the recipe",
        [](const changed_token& c) { return c.of.of.arms[c.arm].nll[c.token]; }},
    declared<changed_token>{
        "probability_base", "share", "exp(-nll_base)",
        [](const changed_token& c) { return simd::exponential(-c.of.of.base.nll[c.token]); }},
    declared<changed_token>{"probability", "share", "exp(-nll)",
                            [](const changed_token& c) {
                                return simd::exponential(-c.of.of.arms[c.arm].nll[c.token]);
                            }},
};

struct base_row {
    const findings& of;
};
constexpr std::array head_members{
    declared<base_row>{"model", "string", "", [](const base_row& r) { return r.of.model; }},
    declared<base_row>{"architecture", "string", "",
                       [](const base_row& r) { return r.of.architecture; }},
    declared<base_row>{"experts", "count?", "of a block, if it has any",
                       [](const base_row& r) { return r.of.experts; }},
    declared<base_row>{"parameters", "count", "",
                       [](const base_row& r) { return r.of.parameters; }},
    declared<base_row>{"text", "string", "where the tokens are from",
                       [](const base_row& r) { return r.of.text; }},
    declared<base_row>{"source", "tokens|text|sample", "the option that named them",
                       [](const base_row& r) { return r.of.source; }},
    declared<base_row>{"seed", "count?", "of a sample",
                       [](const base_row& r) { return r.of.seed; }},
    declared<base_row>{"tokens", "count", "given", [](const base_row& r) { return r.of.tokens; }},
    declared<base_row>{"context", "count", "tokens of a window",
                       [](const base_row& r) { return r.of.context; }},
    declared<base_row>{"stride", "count", "tokens from one window to the next",
                       [](const base_row& r) { return r.of.stride; }},
    declared<base_row>{"precision", "float32|float64", "of the forward pass",
                       [](const base_row& r) { return r.of.precision; }},
    declared<base_row>{"scored", "count", "tokens",
                       [](const base_row& r) { return r.of.of.base.nll.size(); }},
    declared<base_row>{"cross_entropy", "amount", "of the model as it is, nats a token",
                       [](const base_row& r) { return mean_of(r.of.of.base.nll); }},
    declared<base_row>{
        "perplexity", "amount", "exp of it",
        [](const base_row& r) { return simd::exponential(mean_of(r.of.of.base.nll)); }},
    declared<base_row>{"entropy", "amount", "mean of its distributions, nats",
                       [](const base_row& r) { return mean_of(r.of.of.entropy); }},
    declared<base_row>{"bits_per_weight", "amount", "of the file, a parameter",
                       [](const base_row& r) { return r.of.stored_bits; }},
};

// The tokens that change most, by arm.
std::vector<changed_token> changed_tokens(const findings& f) {
    std::vector<changed_token> all;
    for (std::size_t i = 0; i < f.arms.size(); ++i) {
        const std::vector<double>& d = f.of.arms[i].divergence;
        std::vector<std::size_t> order(d.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return d[a] > d[b]; });
        for (std::size_t k = 0; k < std::min(most_changed, order.size()); ++k) {
            if (d[order[k]] > 0) all.push_back({f, i, order[k]});
        }
    }
    return all;
}

// By recipe, Spearman's correlation of what is predicted and what is measured.
std::vector<std::pair<std::string, std::optional<double>>> rank_correlations(const findings& f) {
    std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> by_recipe;
    for (const sensitivity_result& s : f.sensitivity) {
        if (!s.measured) continue;
        by_recipe[s.recipe].first.push_back(s.predicted);
        by_recipe[s.recipe].second.push_back(*s.measured);
    }
    std::vector<std::pair<std::string, std::optional<double>>> all;
    for (const auto& [recipe, pairs] : by_recipe) {
        all.emplace_back(recipe, base::spearman(pairs.first, pairs.second));
    }
    return all;
}

record token_record(const findings& f) {
    const auto numbers = [](const auto& values) { return report::to_list(values); };
    record r{{"id", numbers(f.of.predicted)},
             {"window", numbers(f.of.window_of)},
             {"nll_base", numbers(f.of.base.nll)},
             {"top_base", numbers(f.of.base.top)},
             {"entropy_base", numbers(f.of.entropy)}};
    report::list arms;
    for (std::size_t i = 0; i < f.arms.size(); ++i) {
        const token_scores& a = f.of.arms[i];
        arms.emplace_back(record{{"recipe", f.arms[i].recipe},
                                 {"nll", numbers(a.nll)},
                                 {"kld", numbers(a.divergence)},
                                 {"top", numbers(a.top)}});
    }
    r.emplace_back("recipes", std::move(arms));
    return r;
}

constexpr std::array token_members{
    report::member_type{"id", "[count]", "the token that is predicted"},
    report::member_type{"window", "[count]", ""},
    report::member_type{"nll_base", "[amount]", "-ln of its probability, nats"},
    report::member_type{"top_base", "[count]", "the most probable token"},
    report::member_type{"entropy_base", "[amount]", "nats"},
    report::member_type{"recipes", "[#token_scores]", ""},
};
constexpr std::array token_score_members{
    report::member_type{"recipe", "string", ""},
    report::member_type{"nll", "[amount]", "nats"},
    report::member_type{"kld", "[number]", "nats"},
    report::member_type{"top", "[count]", ""},
};

constexpr std::array rank_members{
    report::member_type{"recipe", "string", ""},
    report::member_type{"spearman", "number?", "null for fewer than three parts, or equal ones"},
};

// Bits of a matrix of rows x cols under a rule, and of what has none as stored.
double bits_of(const lab::operand_rule& rule, std::size_t rows, std::size_t cols) {
    const double count = static_cast<double>(rows) * static_cast<double>(cols);
    if (!rule.recipe->blocks) {
        const products::plain_format& f = *rule.recipe->plain;
        if (f.element != nullptr) return count * f.element->bits();
        if (const auto* const shared = format::find_shared_format(f.name)) {
            const auto length = static_cast<std::size_t>(shared->block);
            return count * shared->element.bits() +
                   static_cast<double>(rows * ((cols + length - 1) / length)) *
                       shared->bits_per_block;
        }
        return count * (f.name == "f32" || f.name == "tf32" ? 32 : 16);
    }
    const codec::recipe& r = *rule.recipe->blocks;
    const auto up = [](std::size_t n, std::size_t by) { return (n + by - 1) / by; };
    const double blocks = static_cast<double>(up(rows, static_cast<std::size_t>(r.block.rows))) *
                          static_cast<double>(up(cols, static_cast<std::size_t>(r.block.cols)));
    return count * r.element->bits() + blocks * codec::bits_per_block(r);
}

}  // namespace

double quantile(std::vector<double> values, double q) {
    std::ranges::sort(values);
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

summary summary_of(const evaluation& e, const token_scores& of) {
    summary s;
    s.tokens = of.nll.size();
    s.windows = e.windows.size();
    s.cross_entropy = mean_of(of.nll);
    s.cross_entropy_base = mean_of(e.base.nll);
    const std::vector<double> d = differences(e, of);
    s.delta_stderr = stderr_of(d);
    s.delta_interval = interval_of(e, d);
    s.kld_mean = mean_of(of.divergence);
    s.kld_stderr = stderr_of(of.divergence);
    s.kld_interval = interval_of(e, of.divergence);
    s.kld_median = quantile(of.divergence, 0.5);
    s.kld_p99 = quantile(of.divergence, 0.99);
    const auto most = std::ranges::max_element(of.divergence);
    s.kld_max = *most;
    s.kld_max_token = static_cast<std::size_t>(most - of.divergence.begin());
    std::size_t same = 0;
    double squares = 0;
    for (std::size_t t = 0; t < s.tokens; ++t) {
        if (of.top[t] == e.base.top[t]) ++same;
        const double change = simd::exponential(-of.nll[t]) - simd::exponential(-e.base.nll[t]);
        squares += change * change;
    }
    s.top1_agreement = static_cast<double>(same) / static_cast<double>(s.tokens);
    s.probability_rms = std::sqrt(squares / static_cast<double>(s.tokens));
    return s;
}

arm_description description_of(const model_weights& model, const arm& a) {
    arm_description w;
    w.recipe = a.name;
    std::set<std::string> weights, inputs;
    double bits = 0, count = 0;
    const auto add_stored = [&](const io::tensor_info& info) {
        bits += 8 * static_cast<double>(info.occupied_bytes());
        count += static_cast<double>(info.elements);
    };
    for (const io::tensor_info& info : model.tensors()) add_stored(info);
    for (std::size_t i = 0; i < model.shape().depth; ++i) {
        for (const place& p : model.linears(i)) {
            const lab::precision& own = a.how.of(model.layer_name(p));
            weights.insert(lab::to_string(own.operands[0][1]));
            inputs.insert(lab::to_string(own.operands[0][0]));
            if (!own.operands[0][1].recipe) continue;
            const tensor::shape shape = model.extents(p);
            bits += bits_of(own.operands[0][1], static_cast<std::size_t>(shape[0]),
                            static_cast<std::size_t>(shape[1])) -
                    8 * static_cast<double>(model.stored_bytes(p));
        }
    }
    const auto one = [](const std::set<std::string>& all) {
        return all.size() == 1 ? *all.begin() : std::string("mixed");
    };
    w.weights = one(weights);
    w.activations = one(inputs);
    w.kv = lab::to_string(a.kv);
    w.attention = lab::to_string(a.attention);
    w.bits_per_weight = bits / count;
    return w;
}

std::vector<part_tensor> tensors_of(const model_weights& model, const arm& a,
                                    const model_part& part) {
    std::vector<part_tensor> all;
    for (std::size_t i = 0; i < model.shape().depth && part.weights; ++i) {
        for (const place& p : model.linears(i)) {
            const std::string layer = model.layer_name(p);
            const lab::operand_rule& rule = a.how.of(layer).operands[0][1];
            if (!rule.recipe || std::ranges::find(part.layers, layer) == part.layers.end()) {
                continue;
            }
            std::string name = model.name(p);
            if (name.ends_with(']')) name.resize(name.rfind('['));
            auto at = std::ranges::find(all, name, &part_tensor::tensor);
            if (at == all.end()) {
                const io::tensor_info& info = model.info(p);
                const std::string_view dtype = tensor::row_of(info.type).name;
                at = all.insert(at, {std::move(name), std::string(dtype), info.shape});
            }
            const tensor::shape shape = model.extents(p);
            const auto rows = static_cast<std::size_t>(shape[0]);
            const auto cols = static_cast<std::size_t>(shape[1]);
            at->elements += rows * cols;
            at->bits += static_cast<std::uint64_t>(bits_of(rule, rows, cols));
            at->stored_bits += 8 * model.stored_bytes(p);
        }
    }
    return all;
}

std::vector<part_tensor> outer_matrices(const model_weights& model) {
    std::vector<part_tensor> all;
    for (const llm::role what : {llm::role::embedding, llm::role::head}) {
        const place p{what};
        if (!model.has(p)) continue;
        const io::tensor_info& info = model.info(p);
        const std::uint64_t bits = 8 * model.stored_bytes(p);
        all.push_back({model.name(p), std::string(tensor::row_of(info.type).name), info.shape,
                       info.elements, bits, bits});
    }
    return all;
}

report::document document_of(const findings& f, report::record head) {
    report::document d;
    d.title = "A model under recipes";
    d.head = std::move(head);
    report::append(d.head, head_members, base_row{f});
    const auto mean_divergence = [](const token_scores& of) { return mean_of(of.divergence); };
    const auto least = std::ranges::min_element(f.of.arms, {}, mean_divergence);
    for (std::size_t i = 0; i < f.arms.size(); ++i) {
        const token_scores& of = f.of.arms[i];
        d.results.push_back(report::written(
            result_members, row{f, f.arms[i], summary_of(f.of, of), !apart(*least, of)}));
    }
    report::list parts, pairs, sensitivity, ranks, layers, tokens;
    for (const part_result& p : f.parts)
        parts.emplace_back(report::written(part_members, part_row{p}));
    for (const pair_result& p : f.pairs)
        pairs.emplace_back(report::written(pair_members, pair_row{p}));
    for (const sensitivity_result& s : f.sensitivity) {
        sensitivity.emplace_back(report::written(sensitivity_members, sensitivity_row{s}));
    }
    for (const auto& [recipe, rho] : rank_correlations(f)) {
        ranks.emplace_back(
            record{{"recipe", recipe}, {"spearman", rho ? report::value(*rho) : report::value()}});
    }
    for (const layer_error& e : f.of.layers) {
        layers.emplace_back(report::written(layer_members, layer_row{f, e}));
    }
    for (const changed_token& c : changed_tokens(f)) {
        tokens.emplace_back(report::written(changed_members, c));
    }
    if (!f.left_out.empty()) d.tail.emplace_back("left_out", report::to_list(f.left_out));
    d.tail.emplace_back("parts", std::move(parts));
    if (!f.kept.empty()) d.tail.emplace_back("kept", written_tensors(f.kept));
    d.tail.emplace_back("pairs", std::move(pairs));
    if (!f.sensitivity.empty()) {
        d.tail.emplace_back("sensitivity", std::move(sensitivity));
        d.tail.emplace_back("rank_correlations", std::move(ranks));
    }
    d.tail.emplace_back("layers", std::move(layers));
    d.tail.emplace_back("changed", std::move(tokens));
    if (f.per_token) d.tail.emplace_back("per_token", token_record(f));
    return d;
}

report::document_schema eval_schema() {
    report::document_schema s("mx.eval/1", "mx eval",
                              "A language model under recipes: log-likelihoods of given tokens, "
                              "and the divergence from the model as it is.");
    return s.members(head_members)
        .member({"results", "[#result]", "one for each recipe"})
        .member({"left_out", "[string]", "parts of the file that text does not reach", false})
        .member({"parts", "[#part]", "parts quantized alone, and left alone"})
        .member(
            {"kept", "[#part_tensor]", "the embedding and the head, which are in no part", false})
        .member({"pairs", "[#pair]", "pairs of parts"})
        .member({"sensitivity", "[#sensitivity]", "parts, by gradient", false})
        .member({"rank_correlations", "[#rank_correlation]",
                 "of what the gradient predicts and what is measured", false})
        .member({"layers", "[#layer]", "errors of the outputs of linear layers"})
        .member({"changed", "[#changed]", "the tokens that change most, by recipe"})
        .member({"per_token", "#per_token", "every scored token", false})
        .define("result", result_members)
        .define("part", part_members)
        .define("part_tensor", part_tensor_members)
        .define("pair", pair_members)
        .define("sensitivity", sensitivity_members)
        .define("rank_correlation", rank_members)
        .define("layer", layer_members)
        .define("changed", changed_members)
        .define("per_token", token_members)
        .define("token_scores", token_score_members);
}

namespace {

struct perplexity {
    const std::string& recipe;
    double value;
    std::optional<double> error;  // of value / baseline
};
constexpr std::array score_members = std::to_array<report::declared<perplexity>>({
    {"recipe", "string", "a recipe, or stored: the baseline, which every metric needs",
     [](auto& s) { return s.recipe; }},
    {"metric", "string", "", [](auto&) { return "perplexity"; }},
    {"value", "number", "", [](auto& s) { return s.value; }},
    {"better", "lower|higher", "", [](auto&) { return "lower"; }},
    {"stderr", "amount", "standard error of value over the baseline's, tokens taken as independent",
     [](auto& s) { return report::only_if(s.error.has_value(), s.error.value_or(0)); }, false},
});

}  // namespace

report::document_schema scores_schema() {
    return report::document_schema("mx.scores/1", "Scores of a task",
                                   "Metrics of a task per recipe, which --eval reads.", false)
        .member({"results", "[#score]", "a metric under a recipe each"})
        .define("score", score_members);
}

report::document scores_of(const findings& f) {
    report::document d;
    d.head.emplace_back("schema", std::string("mx.scores/1"));
    const auto add = [&](const std::string& recipe, double value, std::optional<double> error) {
        d.results.push_back(report::written(score_members, {recipe, value, error}));
    };
    const double base = mean_of(f.of.base.nll);
    add("stored", simd::exponential(base), {});
    // Of two arms with one recipe, the one that quantizes inputs too.
    std::set<std::string> said;
    for (const bool inputs : {true, false}) {
        for (std::size_t i = 0; i < f.arms.size(); ++i) {
            const arm_description& w = f.arms[i];
            const std::string format = w.weights.substr(0, w.weights.find(':'));
            if (format::find_block_format(format) == nullptr || w.kv != "none" ||
                w.attention != "none" || w.activations != (inputs ? w.weights : "none")) {
                continue;
            }
            if (!said.insert(w.weights).second) continue;
            const token_scores& of = f.of.arms[i];
            const double mean = mean_of(of.nll);
            add(w.weights, simd::exponential(mean),
                simd::exponential(mean - base) * stderr_of(differences(f.of, of)));
        }
    }
    return d;
}

}  // namespace mx::eval
