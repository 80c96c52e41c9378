// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/eval/sensitivity.hpp"
#include "libmx/lab/language_model.hpp"

namespace mx::eval {
namespace {

constexpr double most_cache_bytes = 17e9;     // of keys and values of a sample
constexpr double most_state_bytes = 1 << 30;  // of arms that are evaluated at a time

struct named_level {
    std::string_view name;
    level is;
};
constexpr std::array levels{named_level{"layer", level::layer}, named_level{"block", level::block},
                            named_level{"kind", level::kind}, named_level{"tensor", level::tensor}};

std::vector<arm> arms_of(const run_request& q, const model_weights& model) {
    const auto or_none = [](const std::vector<std::string>& all) {
        return all.empty() ? std::vector<std::string>{""} : all;
    };
    std::vector<arm> all;
    const std::vector<lab::layer_name> layers = layers_of(model);
    const auto add = [&](const std::string& name, const std::vector<lab::setting>& settings) {
        for (const std::string& kv : or_none(q.kv)) {
            for (const std::string& attention : or_none(q.attention)) {
                arm a;
                a.name = name;
                a.settings = settings;
                for (const std::string& one : q.at) {
                    for (lab::setting& s : lab::parse_settings(one)) {
                        a.settings.push_back(std::move(s));
                    }
                }
                if (!q.accumulate.empty()) a.settings.push_back({"accumulate", q.accumulate, {}});
                if (!kv.empty()) a.kv = lab::parse_rule(kv);
                if (!attention.empty()) a.attention = lab::parse_rule(attention);
                if (!kv.empty()) a.name += fmt::format("{}kv={}", a.name.empty() ? "" : " ", kv);
                if (!attention.empty()) {
                    a.name += fmt::format("{}attention={}", a.name.empty() ? "" : " ", attention);
                }
                if (a.name.empty()) a.name = lab::to_string(a.settings);
                a.how = lab::precision_of(a.settings, layers);
                all.push_back(std::move(a));
            }
        }
    };
    for (const std::string& r : q.recipes) add(r, settings_of_recipe(r));
    if (!q.weights.empty() || !q.activations.empty()) {
        for (const std::string& w : or_none(q.weights)) {
            for (const std::string& x : or_none(q.activations)) {
                std::string text;
                if (!w.empty()) text = "weights=" + w;
                if (!x.empty()) text += (text.empty() ? "activations=" : " activations=") + x;
                add(text, lab::parse_settings(text));
            }
        }
    }
    const bool more =
        !q.kv.empty() || !q.attention.empty() || !q.at.empty() || !q.accumulate.empty();
    if (all.empty() && more) add("", {});
    return all;
}

std::size_t context_of(const run_request& q, const model_weights& model, std::size_t usual) {
    if (q.context) return *q.context;
    const std::size_t most = model.shape().context;
    return most == 0 ? usual : std::min(most, usual);
}

std::function<void(std::size_t, std::size_t)> progress_of(const run_request& q, const char* what) {
    if (!q.progress) return {};
    return [&q, what](std::size_t done, std::size_t all) { q.progress(what, done, all); };
}

// Evaluates arms in groups whose states fit into memory. Results do not depend on the groups.
std::vector<token_scores> scores_of_many(const run_request& q, const model_weights& model,
                                         lab::execution_context& on, const std::vector<arm>& arms,
                                         evaluation_request r) {
    std::size_t rows = 0;
    for (const window& w : r.windows) rows += w.count;
    const double state =
        static_cast<double>(rows * model.shape().width) * (r.in == arithmetic::float64 ? 8 : 4);
    const auto at_once = static_cast<std::size_t>(std::max(1.0, most_state_bytes / state));
    std::vector<token_scores> all;
    r.layer_errors = false;
    r.observer = nullptr;
    r.progress = progress_of(q, "parts");
    for (std::size_t i = 0; i < arms.size(); i += at_once) {
        const auto begin = arms.begin() + static_cast<std::ptrdiff_t>(i);
        const auto end =
            arms.begin() + static_cast<std::ptrdiff_t>(std::min(arms.size(), i + at_once));
        evaluation e = evaluate(model, on, {begin, end}, r);
        for (token_scores& s : e.arms) all.push_back(std::move(s));
    }
    return all;
}

// Pairs of `count` parts, drawn by the seed, without repetition.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(std::size_t count, std::size_t requested,
                                                          std::uint64_t seed) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    const std::uint64_t name = base::tensor_id("mx.eval.pairs");
    const std::size_t most = count < 2 ? 0 : count * (count - 1) / 2;
    for (std::uint64_t draw = 0; pairs.size() < std::min(requested, most); draw += 2) {
        const auto pick = [&](std::uint64_t index) {
            return static_cast<std::size_t>(base::random_u32({seed, name}, index) % count);
        };
        std::pair<std::size_t, std::size_t> one{pick(draw), pick(draw + 1)};
        if (one.first > one.second) std::swap(one.first, one.second);
        if (one.first == one.second || std::ranges::find(pairs, one) != pairs.end()) continue;
        pairs.push_back(one);
    }
    return pairs;
}

std::string_view name_of(level by) { return std::ranges::find(levels, by, &named_level::is)->name; }

void find_parts(const run_request& q, const model_weights& model, lab::execution_context& on,
                const std::vector<arm>& arms, const evaluation_request& r, findings& f) {
    for (std::size_t i = 0; i < arms.size(); ++i) {
        const std::vector<model_part> parts = parts_of(model, *q.each, arms[i]);
        std::vector<arm> many;
        for (const model_part& p : parts) many.push_back(only(arms[i], {&p}));
        for (const model_part& p : parts) many.push_back(all_but(arms[i], p));
        const auto pairs = pairs_of(parts.size(), q.pairs, q.seed);
        for (const auto& [a, b] : pairs) many.push_back(only(arms[i], {&parts[a], &parts[b]}));
        const std::vector<token_scores> scores = scores_of_many(q, model, on, many, r);
        const auto mean = [&](const token_scores& s) { return summary_of(f.of, s).kld_mean; };
        const double whole = mean(f.of.arms[i]);
        for (std::size_t k = 0; k < parts.size(); ++k) {
            const summary alone = summary_of(f.of, scores[k]);
            const summary without = summary_of(f.of, scores[parts.size() + k]);
            f.parts.push_back({f.arms[i].recipe, std::string(name_of(*q.each)), parts[k].name,
                               alone.kld_mean, alone.cross_entropy - alone.cross_entropy_base,
                               alone.top1_agreement, without.kld_mean,
                               without.cross_entropy - without.cross_entropy_base, whole,
                               tensors_of(model, arms[i], parts[k])});
        }
        for (std::size_t k = 0; k < pairs.size(); ++k) {
            const auto& [a, b] = pairs[k];
            f.pairs.push_back({f.arms[i].recipe, parts[a].name, parts[b].name, mean(scores[a]),
                               mean(scores[b]), mean(scores[2 * parts.size() + k])});
        }
    }
}

// Of every part of every arm, in the order of find_parts.
std::vector<arm> parts_alone(const run_request& q, const model_weights& model,
                             const std::vector<arm>& arms) {
    std::vector<arm> all;
    for (const arm& a : arms) {
        for (const model_part& p : parts_of(model, *q.each, a)) all.push_back(only(a, {&p}));
    }
    return all;
}

void predict_parts(const run_request& q, const model_weights& model, lab::execution_context& on,
                   const std::vector<arm>& arms, evaluation_request r, findings& f) {
    r.progress = progress_of(q, "gradients");
    const std::vector<double> predicted =
        predicted_divergences(model, on, parts_alone(q, model, arms), r);
    std::size_t at = 0;
    for (std::size_t i = 0; i < arms.size(); ++i) {
        for (const model_part& p : parts_of(model, *q.each, arms[i])) {
            sensitivity_result s{
                f.arms[i].recipe, std::string(name_of(*q.each)), p.name, predicted[at], {}};
            if (q.measured) s.measured = f.parts[at].only_kld;
            f.sensitivity.push_back(std::move(s));
            ++at;
        }
    }
}

// Before anything is computed.
void check_sample(const model_weights& model, std::size_t context, std::size_t sequences,
                  arithmetic in) {
    const model_shape& s = model.shape();
    if (s.context != 0 && context > s.context) {
        base::refuse("--context {}: the model has {} positions", context, s.context);
    }
    const double cache = 2.0 * static_cast<double>(sequences * context) *
                         static_cast<double>(s.depth * s.key_width()) *
                         (in == arithmetic::float64 ? 8 : 4);
    if (cache > most_cache_bytes) {
        base::refuse(
            "--sample: keys and values of {} tokens take {:.3g} GB, more than the {:.3g} of mx; "
            "draw fewer",
            sequences * context, cache / 1e9, most_cache_bytes / 1e9);
    }
}

// Whether an arm computes anything else than the model as it is.
bool changes_something(const model_weights& model, const arm& a) {
    const auto quantizes = [](const lab::precision& p) {
        return p.operands[0][0].recipe || p.operands[0][1].recipe || p.accumulate ||
               p.vector_forward != lab::rounding::none;
    };
    return a.kv.recipe || a.attention.recipe ||
           std::ranges::any_of(layers_of(model), [&](const lab::layer_name& l) {
               return quantizes(a.how.of(l.name));
           });
}

void check_arms(const run_request& q, const model_weights& model, const std::vector<arm>& arms) {
    if (q.each && arms.empty()) base::refuse("--each: of which recipe? give one with -r");
    for (const arm& a : arms) {
        for (const lab::operand_rule* rule : {&a.kv, &a.attention}) {
            if (rule->recipe && rule->recipe->rotation().what != transform::kind::none) {
                base::refuse("'{}': transforms are for linear layers, where they cancel",
                             lab::to_string(*rule));
            }
        }
        const bool requested = std::ranges::any_of(
            a.settings, [](const lab::setting& s) { return s.value != "none"; });
        if (requested && !changes_something(model, a)) {
            base::refuse("'{}' changes nothing in a forward pass, which has operands x and w",
                         a.name);
        }
        if (!q.each) continue;
        if (a.kv.recipe || a.attention.recipe) {
            base::refuse("--each is of linear layers: leave out --kv and --attention");
        }
        if (parts_of(model, *q.each, a).empty()) {
            base::refuse("--each: '{}' quantizes no linear layer", a.name);
        }
    }
}

}  // namespace

level level_named(const std::string& name) { return base::row_named(levels, "level", name).is; }

findings run(const run_request& q, lab::execution_context& on) {
    if (q.by_gradient && !q.each) base::refuse("--by: of what? name a level with --each");
    if (q.pairs != 0 && !q.measured) base::refuse("--pairs are evaluated: leave out --by gradient");
    if (q.pairs != 0 && !q.each) base::refuse("--pairs: of what? name a level with --each");
    if (q.sample != 0 && q.stride) {
        base::refuse("--stride: the windows of a sample have nothing to do with each other");
    }
    if (q.sample == 0 && q.start) base::refuse("--first is the first token of a --sample");
    const model_weights model(q.model, q.heads);
    const std::vector<arm> arms = arms_of(q, model);
    check_arms(q, model, arms);
    findings f;
    evaluation_request r;
    r.in = q.in;
    r.layer_errors = q.layer_errors;
    r.cancel = q.cancel;
    if (q.sample != 0) {
        const std::size_t context = std::min(q.sample, context_of(q, model, usual_sample_context));
        if (context < 2) base::refuse("--context {}: a window needs two tokens", context);
        const std::size_t sequences = (q.sample + context - 1) / context;
        check_sample(model, context, sequences, q.in);
        r.progress = progress_of(q, "sample");
        const std::uint32_t start = q.start.value_or(model.first_token().value_or(0));
        r.tokens = sample(model, on, r.in, sequences, context, start, q.seed, r);
        r.windows = separate_windows(r.tokens.size(), context);
        f.context = f.stride = context;
        f.text = fmt::format("a sample of the model, seed {}", q.seed);
        f.source = "sample";
        f.seed = q.seed;
    } else {
        r.tokens = q.tokens;
        f.text = q.text;
        f.source = q.encoded ? "text" : "tokens";
        if (r.tokens.size() < 2) {
            throw base::error(base::error_kind::input,
                              fmt::format("has {}; prediction needs two tokens",
                                          r.tokens.empty() ? "no token" : "one token"),
                              {q.text, {}, {}});
        }
        f.context = std::min(context_of(q, model, usual_context), r.tokens.size());
        f.stride = q.stride.value_or(f.context);
        if (f.context < 2) base::refuse("--context {}: a window needs two tokens", f.context);
        if (f.stride == 0 || f.stride > f.context) {
            base::refuse("--stride {}: windows of {} tokens would leave tokens out", f.stride,
                         f.context);
        }
        r.windows = windows_of(r.tokens.size(), f.context, f.stride);
    }
    std::optional<activation_file> activations;
    if (!q.dump.empty()) {
        activations.emplace(q.dump_file, model, q.dump, r.windows);
        r.probabilities = activations->has_probabilities();
        r.observer = [&](std::string_view layer, std::string_view name, std::size_t count,
                         std::size_t cols, const float* values) {
            activations->add(layer, name, count, cols, values);
        };
    }
    if (q.by_gradient) {
        // Before the evaluation, because it refuses some models.
        lab::language_shape_of(model.shape(), f.context, model.path());
    }
    r.progress = progress_of(q, "blocks");
    f.of = evaluate(model, on, arms, r);
    if (activations) {
        if (activations->has_gradients()) {
            r.progress = progress_of(q, "gradients");
            gradients_of_outputs(model, on, r, [&](const layer_gradient& g) {
                const std::vector<float> dy = in_order_of_file(g, model.shape().head_size);
                activations->add_gradients(g.layer, g.values.tokens, g.of.count, g.values.out,
                                           dy.data());
            });
        }
        activations->commit();
    }
    f.model = q.model;
    f.architecture = std::string(model.shape().kind->name);
    if (model.shape().experts != 0) f.experts = model.shape().experts;
    f.precision = q.in == arithmetic::float64 ? "float64" : "float32";
    f.left_out = model.left_out();
    f.tokens = r.tokens.size();
    f.per_token = q.per_token;
    double stored = 0;
    for (const io::tensor_info& t : model.tensors()) {
        f.parameters += static_cast<std::size_t>(t.elements);
        stored += 8 * static_cast<double>(t.occupied_bytes());
    }
    f.stored_bits = stored / static_cast<double>(f.parameters);
    for (const arm& a : arms) f.arms.push_back(description_of(model, a));
    if (q.each && q.measured) {
        find_parts(q, model, on, arms, r, f);
        f.kept = outer_matrices(model);
    }
    if (q.by_gradient) predict_parts(q, model, on, arms, r, f);
    return f;
}

}  // namespace mx::eval
