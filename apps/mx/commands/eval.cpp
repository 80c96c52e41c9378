// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "apps/mx/backends.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/eval/records.hpp"
#include "libmx/eval/token_file.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/tokens/tokenizer.hpp"

namespace mx::app {
namespace {

constexpr std::size_t usual_context = 2048, usual_sample_context = 256;
constexpr std::size_t most_text = std::size_t{1} << 28;
constexpr double most_state_bytes = 1 << 30;  // of parts evaluated at a time

struct eval_options {
    std::string model;
    std::string tokens, text, tokenizer;
    std::optional<std::uint64_t> sample, start;
    std::uint64_t seed = 1, heads = 0;
    std::optional<std::uint64_t> context, stride;
    std::vector<std::string> recipes, weights, activations, kv, attention, at;
    std::string accumulate;
    std::string precision = "float32";
    std::string each;
    std::uint64_t pairs = 0;
    bool layers = false, per_token = false;
    std::string scores, dump_file;
    std::vector<std::string> dump;
    output_options out;
    run_options run;
};

struct named_level {
    std::string_view name;
    eval::level is;
};
constexpr std::array levels{
    named_level{"layer", eval::level::layer}, named_level{"block", eval::level::block},
    named_level{"kind", eval::level::kind}, named_level{"tensor", eval::level::tensor}};

// One arm for each of --recipe and each pair of --weights and --activations, under each of --kv and
// --attention.
std::vector<eval::arm> arms_of(const eval_options& o, const eval::model_weights& model) {
    const auto or_none = [](const std::vector<std::string>& all) {
        return all.empty() ? std::vector<std::string>{""} : all;
    };
    std::vector<eval::arm> all;
    const std::vector<lab::layer_name> layers = eval::layers_of(model);
    const auto add = [&](const std::string& name, const std::vector<lab::setting>& settings) {
        for (const std::string& kv : or_none(o.kv)) {
            for (const std::string& attention : or_none(o.attention)) {
                eval::arm a;
                a.name = name;
                a.settings = settings;
                for (const std::string& one : o.at) {
                    for (lab::setting& s : lab::parse_settings(one)) {
                        a.settings.push_back(std::move(s));
                    }
                }
                if (!o.accumulate.empty()) a.settings.push_back({"accumulate", o.accumulate, {}});
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
    for (const std::string& r : o.recipes) add(r, eval::settings_of_recipe(r));
    if (!o.weights.empty() || !o.activations.empty()) {
        for (const std::string& w : or_none(o.weights)) {
            for (const std::string& x : or_none(o.activations)) {
                std::string text;
                if (!w.empty()) text = "weights=" + w;
                if (!x.empty()) text += (text.empty() ? "activations=" : " activations=") + x;
                add(text, lab::parse_settings(text));
            }
        }
    }
    const bool more =
        !o.kv.empty() || !o.attention.empty() || !o.at.empty() || !o.accumulate.empty();
    if (all.empty() && more) add("", {});
    return all;
}

std::size_t context_of(const eval_options& o, const eval::model_weights& model, std::size_t usual) {
    if (o.context) return static_cast<std::size_t>(*o.context);
    const std::size_t most = model.shape().context;
    return most == 0 ? usual : std::min(most, usual);
}

// Evaluates arms in groups whose states fit into memory. Results do not depend on the groups.
std::vector<eval::token_scores> scores_of_many(const eval::model_weights& model, lab::machine& on,
                                               const std::vector<eval::arm>& arms,
                                               eval::evaluation_request r,
                                               const std::function<void()>& step) {
    std::size_t rows = 0;
    for (const eval::window& w : r.windows) rows += w.count;
    const double state = static_cast<double>(rows * model.shape().width) *
                         (r.in == eval::arithmetic::float64 ? 8 : 4);
    const auto at_once = static_cast<std::size_t>(std::max(1.0, most_state_bytes / state));
    std::vector<eval::token_scores> all;
    r.layer_errors = false;
    r.progress = [&step](std::size_t, std::size_t) { step(); };
    for (std::size_t i = 0; i < arms.size(); i += at_once) {
        std::vector<eval::arm> some(
            arms.begin() + static_cast<std::ptrdiff_t>(i),
            arms.begin() + static_cast<std::ptrdiff_t>(std::min(arms.size(), i + at_once)));
        eval::evaluation e = eval::evaluate(model, on, some, r);
        for (eval::token_scores& s : e.arms) all.push_back(std::move(s));
    }
    return all;
}

double mean_kld(const eval::evaluation& e, const eval::token_scores& s) {
    return eval::summary_of(e, s).kld_mean;
}

void find_parts(const eval_options& o, const eval::model_weights& model, lab::machine& on,
                const std::vector<eval::arm>& arms, const eval::evaluation_request& r,
                eval::findings& f) {
    const eval::level by =
        std::ranges::find(levels, std::string_view(o.each), &named_level::name)->is;
    for (std::size_t i = 0; i < arms.size(); ++i) {
        const std::vector<eval::model_part> parts = eval::parts_of(model, by, arms[i]);
        std::vector<eval::arm> many;
        for (const eval::model_part& p : parts) many.push_back(eval::only(arms[i], {&p}));
        for (const eval::model_part& p : parts) {
            many.push_back(eval::all_but(model, arms[i], p));
        }
        // Pairs are drawn from all pairs, by the seed.
        std::vector<std::pair<std::size_t, std::size_t>> pairs;
        const std::uint64_t name = base::tensor_id("mx.eval.pairs");
        const std::size_t most = parts.size() * (parts.size() - 1) / 2;
        for (std::uint64_t draw = 0; pairs.size() < std::min<std::size_t>(o.pairs, most); ++draw) {
            const auto pick = [&](std::uint64_t index) {
                return static_cast<std::size_t>(base::random_u32({o.seed, name}, index) %
                                                parts.size());
            };
            std::size_t a = pick(2 * draw), b = pick(2 * draw + 1);
            if (a > b) std::swap(a, b);
            if (a == b || std::ranges::find(pairs, std::pair{a, b}) != pairs.end()) continue;
            pairs.emplace_back(a, b);
            many.push_back(eval::only(arms[i], {&parts[a], &parts[b]}));
        }
        step_bar bar(o.run.quiet, model.shape().depth + 1);
        const std::vector<eval::token_scores> scores =
            scores_of_many(model, on, many, r, [&bar] { bar.step(); });
        const double whole = mean_kld(f.of, f.of.arms[i]);
        for (std::size_t k = 0; k < parts.size(); ++k) {
            const eval::summary only = eval::summary_of(f.of, scores[k]);
            const eval::summary without = eval::summary_of(f.of, scores[parts.size() + k]);
            f.parts.push_back({f.arms[i].recipe, o.each, parts[k].name, only.kld_mean,
                               only.cross_entropy - only.cross_entropy_base, only.top1_agreement,
                               without.kld_mean, without.cross_entropy - without.cross_entropy_base,
                               whole});
        }
        for (std::size_t k = 0; k < pairs.size(); ++k) {
            f.pairs.push_back({f.arms[i].recipe, parts[pairs[k].first].name,
                               parts[pairs[k].second].name, mean_kld(f.of, scores[pairs[k].first]),
                               mean_kld(f.of, scores[pairs[k].second]),
                               mean_kld(f.of, scores[2 * parts.size() + k])});
        }
    }
}

// The tokenizer of the model, or the one that the user names; null if there is none and none is
// needed: pieces of tokens are then not shown.
std::unique_ptr<tokens::tokenizer> tokenizer_of(const eval_options& o) {
    if (!o.tokenizer.empty()) return tokens::tokenizer_of(o.tokenizer);
    try {
        return tokens::tokenizer_of(o.model);
    } catch (const base::error&) {
        if (!o.text.empty()) throw;
        return nullptr;
    }
}

// The ids of a text, with the token before it that the model's file asks for.
std::vector<std::uint32_t> tokens_of_text(const eval_options& o, const tokens::tokenizer& words) {
    io::input_stream file(o.text);
    std::string text;
    std::vector<char> some(std::size_t{1} << 16);
    while (const std::size_t count = file.read(some)) {
        text.append(some.data(), count);
        if (text.size() > most_text) {
            throw base::error(base::error_kind::input,
                              fmt::format("has more than {} bytes, the limit of mx", most_text),
                              {o.text, {}, {}});
        }
    }
    std::vector<std::uint32_t> ids;
    try {
        ids = words.encode(text);
    } catch (const base::error& e) {
        throw base::error(e.kind(), e.message(), {o.text, {}, e.place().offset});
    }
    if (words.bos()) ids.insert(ids.begin(), *words.bos());
    return ids;
}

int run_eval(const eval_options& o) {
    require_one_of("--precision", "precision", o.precision, {"float32", "float64"});
    if (!o.each.empty()) {
        require_one_of("--each", "level", o.each, {"layer", "block", "kind", "tensor"});
    } else if (o.pairs != 0) {
        refuse("--pairs: of what? name a level with --each");
    }
    const int sources =
        (o.tokens.empty() ? 0 : 1) + (o.text.empty() ? 0 : 1) + (o.sample ? 1 : 0);
    if (sources != 1) {
        refuse(
            "say which tokens to predict, in one way: --text FILE, --tokens FILE with their ids, "
            "or --sample N, which draws N from the model itself");
    }
    std::vector<std::string> inputs{o.model};
    for (const std::string& file : {o.tokens, o.text}) {
        if (!file.empty()) inputs.push_back(file);
    }
    std::vector<std::string> more;
    if (!o.scores.empty()) more.push_back(o.scores);
    if (o.dump.empty() != o.dump_file.empty()) {
        refuse("--dump PATTERN and -o FILE: which activations, and where to");
    }
    if (!o.dump_file.empty()) more.push_back(o.dump_file);
    outputs to(o.out, inputs, more);
    const eval::model_weights model(o.model, static_cast<std::size_t>(o.heads));
    const std::vector<eval::arm> arms = arms_of(o, model);
    if (!o.each.empty() && arms.empty()) refuse("--each: of which recipe? give one with -r");
    const int threads = base::thread_count(o.run.threads);
    lab::machine on(threads, chosen_backend(o.run.backend).name);

    const std::unique_ptr<tokens::tokenizer> words = tokenizer_of(o);
    eval::findings f;
    eval::evaluation_request r;
    r.in = o.precision == "float64" ? eval::arithmetic::float64 : eval::arithmetic::float32;
    r.layer_errors = o.layers;
    r.cancel = &interrupted();
    if (o.sample) {
        const std::size_t count = static_cast<std::size_t>(*o.sample);
        const std::size_t context = std::min(count, context_of(o, model, usual_sample_context));
        const std::size_t sequences = (count + context - 1) / context;
        step_bar bar(o.run.quiet, context);
        r.progress = [&bar](std::size_t, std::size_t) { bar.step(); };
        const std::uint64_t start = o.start.value_or(model.first_token().value_or(0));
        if (start > 0xffffffffu) refuse("--start: {} is no token", start);
        r.tokens = eval::sample(model, on, r.in, sequences, context,
                                static_cast<std::uint32_t>(start), o.seed, r);
        r.windows = eval::separate_windows(r.tokens.size(), context);
        f.context = f.stride = context;
        f.text = fmt::format("{} tokens drawn from the model, seed {}", r.tokens.size(), o.seed);
    } else {
        r.tokens = o.text.empty() ? eval::read_tokens(o.tokens) : tokens_of_text(o, *words);
        f.context = std::min(context_of(o, model, usual_context), r.tokens.size());
        f.stride = o.stride ? static_cast<std::size_t>(*o.stride) : f.context;
        if (f.stride == 0 || f.stride > std::max<std::size_t>(1, f.context)) {
            refuse("--stride {}: windows of {} tokens would leave tokens out", f.stride, f.context);
        }
        f.text = o.text.empty() ? o.tokens : o.text;
    }
    if (r.tokens.size() < 2) {
        throw base::error(base::error_kind::input,
                          fmt::format("has {} tokens; prediction needs two", r.tokens.size()),
                          {f.text, {}, {}});
    }
    if (f.context < 2) refuse("--context {}: a window needs two tokens", f.context);
    if (!o.sample) r.windows = eval::windows_of(r.tokens.size(), f.context, f.stride);
    std::optional<eval::activation_file> activations;
    if (!o.dump.empty()) {
        std::size_t rows = 0;
        for (const eval::window& w : r.windows) rows += w.count;
        activations.emplace(o.dump_file, model, o.dump, rows);
        r.observer = [&](std::string_view layer, std::string_view name, std::size_t count,
                         std::size_t cols, const float* values) {
            activations->add(layer, name, count, cols, values);
        };
    }
    {
        step_bar bar(o.run.quiet, model.shape().depth + 1);
        r.progress = [&bar](std::size_t, std::size_t) { bar.step(); };
        f.of = eval::evaluate(model, on, arms, r);
    }
    r.observer = nullptr;
    if (activations) activations->commit();
    if (words) {
        for (const std::uint32_t id : f.of.predicted) {
            f.pieces.push_back(id < words->vocabulary() ? words->piece(id) : std::string());
        }
    }
    f.model = o.model;
    f.architecture = std::string(model.shape().kind->name);
    f.precision = o.precision;
    f.tokens = r.tokens.size();
    f.per_token = o.per_token;
    double stored = 0;
    for (const io::tensor_info& t : model.files().reader().tensors()) {
        f.parameters += static_cast<std::size_t>(t.elements);
        stored += 8 * static_cast<double>(t.occupied_bytes());
    }
    f.stored_bits = stored / static_cast<double>(f.parameters);
    for (const eval::arm& a : arms) f.arms.push_back(eval::words_of_arm(model, a));
    if (!o.each.empty()) find_parts(o, model, on, arms, r, f);
    if (!o.scores.empty()) {
        io::output_file file(o.scores);
        report::write_json(eval::scores_of(f), {},
                           [&](std::string_view text) { file.append(text); });
        file.commit();
    }
    to.finish(eval::document_of(f), o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_eval(parser& cmd) {
    const auto o = std::make_shared<eval_options>();
    cmd.group("Input");
    cmd.add_option("MODEL", o->model,
                   "a folder with config.json and safetensors, an index, a GGUF file, or a file "
                   "with names of llama2.c")
        ->required();
    cmd.add_option("--tokens FILE", o->tokens,
                   "ids of the text's tokens: one array of U16, U32, I32 or I64");
    cmd.add_option("--text FILE", o->text,
                   "a text ('-': standard input), by the tokenizer that comes with the model");
    cmd.add_option("--tokenizer FILE", o->tokenizer,
                   "another tokenizer: tokenizer.json, a GGUF file, or one of llama2.c");
    cmd.add_option("--sample N", o->sample, "N tokens drawn from the model itself instead")
        ->in_range(std::uint64_t{2}, std::uint64_t{1} << 24);
    cmd.add_option("--seed N", o->seed, "of --sample and --pairs (1)")->not_negative();
    cmd.add_option("--start ID", o->start, "first token of a sample (the model's, else 0)")
        ->not_negative();
    cmd.add_option("--context N", o->context,
                   "tokens of a window (2048, samples 256, or the model's if fewer)")
        ->in_range(std::uint64_t{2}, std::uint64_t{1} << 24);
    cmd.add_option("--stride N", o->stride, "from one window to the next (the context)")
        ->in_range(std::uint64_t{1}, std::uint64_t{1} << 24);
    cmd.add_option("--heads N", o->heads, "heads of a model of llama2.c without configuration")
        ->not_negative();
    cmd.group("Precision");
    cmd.add_option("-r,--recipe RECIPE", o->recipes,
                   "weights and inputs of linear layers; or settings: 'weights=mxfp4 "
                   "activations=mxfp8'; repeatable");
    cmd.add_option("--weights RECIPE", o->weights,
                   "weights alone, or with --activations; repeatable");
    cmd.add_option("--activations RECIPE", o->activations, "inputs of linear layers; repeatable");
    cmd.add_option("--kv RECIPE", o->kv, "cached keys and values; repeatable");
    cmd.add_option("--attention RECIPE", o->attention,
                   "queries, keys, probabilities and values as operands; repeatable");
    cmd.add_option("--at PATTERN:KEY=VALUE", o->at,
                   "some layers otherwise: '*.down_proj:x=mxfp8'; repeatable");
    cmd.add_option("--accumulate MODEL", o->accumulate,
                   "how products of linear layers are summed (mx explain accumulators)");
    cmd.add_option("--precision TYPE", o->precision,
                   "of the forward pass: float32 (default) or float64, the reference");
    cmd.group("Who pays");
    cmd.add_option("--each LEVEL", o->each,
                   "one place at a time, and all but one: layer, block, kind or tensor");
    cmd.add_option("--pairs N", o->pairs, "N pairs of these places")->not_negative();
    cmd.add_flag("--layers", o->layers, "errors of the outputs of every linear layer");
    cmd.group("Output");
    cmd.add_option("--dump PATTERN", o->dump,
                   "activations of the model as it is: inputs NAME.x of linear layers, keys NAME.k "
                   "and values NAME.v that match; repeatable");
    cmd.add_option("-o,--output FILE", o->dump_file, "safetensors file of --dump")->file_name();
    cmd.add_flag("--per-token", o->per_token, "every token's figures in JSON");
    cmd.add_option("--scores FILE", o->scores, "perplexities for --eval of other commands")
        ->file_name();
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run, false);
    cmd.description(
        "What a recipe does to a language model: cross-entropy, perplexity, and the divergence of "
        "its predictions from those of the model as it is, token by token. Weights and inputs of "
        "the linear layers are quantized; embedding, head, norms, softmax and sums are not. The "
        "same bytes for any number of threads and instruction set. docs/design/evaluation.md "
        "states each step.");
    cmd.examples(
        "mx eval model.gguf --sample 2000 -r mxfp8:scale=rceil -r nvfp4\n"
        "mx eval folder --tokens ids.npy --weights mxfp4 --weights nvfp4 --json eval.json\n"
        "mx eval folder --tokens ids.npy -r mxfp4 --each block --html eval.html\n"
        "mx eval folder --tokens ids.npy -r mxfp4 --at '*.down_proj:x=mxfp8' --kv mxfp8\n"
        "mx eval folder --tokens ids.npy -r mxfp8 --scores scores.json\n"
        "mx eval folder --tokens ids.npy --dump '*.down_proj.x' -o x.safetensors\n");
    return [o] { return run_eval(*o); };
}

}  // namespace mx::app
