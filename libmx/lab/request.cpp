// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/lab/model.hpp"

namespace mx::lab {
namespace {

template <typename T>
T parsed(const std::string& text, T least, T most) {
    const std::optional<T> n = base::parsed<T>(text);
    if (!n || !(*n >= least) || !(*n <= most)) {
        base::refuse("'{}': give a number from {} to {}", text, least, most);
    }
    return *n;
}

std::uint64_t whole(const std::string& text, std::uint64_t least, std::uint64_t most) {
    return parsed<std::uint64_t>(text, least, most);
}

std::optional<std::uint64_t> seed_or_none(const std::string& text) {
    if (text.empty()) return std::nullopt;
    return whole(text, 0, most_seed);
}
std::string text_of_seed(const std::optional<std::uint64_t>& seed) {
    return seed ? fmt::format("{}", *seed) : std::string();
}

constexpr std::string_view config_beginning = "config.";  // llm::config_prefix in a checkpoint
constexpr std::uint64_t most_steps = std::uint64_t{1} << 40;
constexpr std::uint64_t unset_steps = ~std::uint64_t{0};  // until fit_schedule()

template <typename T>
struct word {
    std::string_view name;
    T value;
};

template <typename T, std::size_t N>
T read_word(const std::string& text, const std::array<word<T>, N>& words) {
    return base::row_named(words, "value", text).value;
}
template <typename T, std::size_t N>
std::string print_word(T value, const std::array<word<T>, N>& words) {
    for (const word<T>& w : words) {
        if (w.value == value) return std::string(w.name);
    }
    return {};
}

constexpr std::array activations{
    word<activation>{"gelu", activation::gelu}, word<activation>{"relu", activation::relu},
    word<activation>{"swiglu", activation::swiglu}, word<activation>{"none", activation::none}};
constexpr std::array norms{word<norm_kind>{"layer", norm_kind::layer},
                           word<norm_kind>{"rms", norm_kind::rms},
                           word<norm_kind>{"none", norm_kind::none}};
constexpr std::array tasks{word<task_kind>{"paper", task_kind::paper},
                           word<task_kind>{"teacher", task_kind::teacher}};
constexpr std::array losses{word<loss_kind>{"mse", loss_kind::mse},
                            word<loss_kind>{"kl", loss_kind::kl}};
constexpr std::array streams{word<stream_kind>{"mx", stream_kind::mx},
                             word<stream_kind>{"torch", stream_kind::torch}};
constexpr std::array optimizers{word<optimizer>{"adam", optimizer::adam},
                                word<optimizer>{"sgd", optimizer::sgd}};
constexpr std::array models{word<model_kind>{"proxy", model_kind::proxy},
                            word<model_kind>{"olmo", model_kind::olmo},
                            word<model_kind>{"llama", model_kind::llama}};
constexpr std::array switches{word<bool>{"on", true}, word<bool>{"off", false}};
constexpr std::array starts{word<start>{"pytorch", start::pytorch},
                            word<start>{"xavier", start::xavier}};

constexpr std::array request_rows{
    request_key{"width", "D", "Network", true, true, "features (64)",
                [](run_request& r, const std::string& t) { r.shape.width = whole(t, 1, 65536); },
                [](const run_request& r) { return fmt::format("{}", r.shape.width); }},
    request_key{"depth", "L", "Network", true, true, "blocks (4)",
                [](run_request& r, const std::string& t) { r.shape.depth = whole(t, 1, 1024); },
                [](const run_request& r) { return fmt::format("{}", r.shape.depth); }},
    request_key{
        "activation", "PHI", "Network", true, true, "gelu, relu, swiglu or none (gelu)",
        [](run_request& r, const std::string& t) { r.shape.phi = read_word(t, activations); },
        [](const run_request& r) { return print_word(r.shape.phi, activations); }},
    request_key{"norm", "KIND", "Network", true, true, "layer, rms or none (layer)",
                [](run_request& r, const std::string& t) { r.shape.norm = read_word(t, norms); },
                [](const run_request& r) { return print_word(r.shape.norm, norms); }},
    request_key{"start", "KIND", "Network", true, false,
                "initial parameters: pytorch (uniform within 1/sqrt(fan in)) or xavier (normal, "
                "gain 0.5, biases 0)",
                [](run_request& r, const std::string& t) { r.begin = read_word(t, starts); },
                [](const run_request& r) { return print_word(r.begin, starts); }},
    request_key{
        "init-gain", "RANGE", "Network", true, true,
        "gains begin uniform in this range, LO:HI (1:1)",
        [](run_request& r, const std::string& t) {
            const std::size_t colon = t.find(':');
            if (colon == std::string::npos) base::refuse("'{}': give LO:HI", t);
            r.least_gain = parsed<double>(t.substr(0, colon), -1e6, 1e6);
            r.most_gain = parsed<double>(t.substr(colon + 1), r.least_gain, 1e6);
        },
        [](const run_request& r) { return fmt::format("{}:{}", r.least_gain, r.most_gain); }},
    request_key{"heads", "N", "Network", false, true, "of attention (by size)",
                [](run_request& r, const std::string& t) { r.heads = whole(t, 1, 4096); },
                [](const run_request& r) { return fmt::format("{}", r.heads); }},
    request_key{"key-heads", "N", "Network", false, true,
                "heads of keys and values, each shared by as many query heads; 0: one per query "
                "head (0)",
                [](run_request& r, const std::string& t) { r.key_heads = whole(t, 0, 4096); },
                [](const run_request& r) { return fmt::format("{}", r.key_heads); }},
    request_key{"context", "N", "Network", false, true, "tokens of a sequence (by size)",
                [](run_request& r, const std::string& t) { r.context = whole(t, 2, 8192); },
                [](const run_request& r) { return fmt::format("{}", r.context); }},
    request_key{"qk-norm", "on|off", "Network", false, true,
                "norms of queries and keys over all heads (olmo: on, llama: off)",
                [](run_request& r, const std::string& t) { r.qk_norm = read_word(t, switches); },
                [](const run_request& r) { return print_word(r.qk_norm, switches); }},
    request_key{"num-experts", "N", "Network", false, true,
                "MLPs of a block, between which a router chooses for each token; 0: one MLP, for "
                "all (0). The hidden width is that of one MLP divided by --experts-per-token",
                [](run_request& r, const std::string& t) { r.experts = whole(t, 0, 1024); },
                [](const run_request& r) { return fmt::format("{}", r.experts); }},
    request_key{"experts-per-token", "K", "Network", false, true, "experts of a token (2)",
                [](run_request& r, const std::string& t) { r.experts_used = whole(t, 1, 1024); },
                [](const run_request& r) { return fmt::format("{}", r.experts_used); }},
    request_key{"init", "FILE", "Network", true, true,
                "safetensors with the initial parameters (layers.0.fc1.weight, ..., or "
                "init.layers.0.fc1.weight); with --tokens a model, as mx eval reads it",
                [](run_request& r, const std::string& t) { r.init_file = t; },
                [](const run_request& r) { return r.init_file; }},
    request_key{"batch", "B", "Data", true, true, "tokens of a step (256)",
                [](run_request& r, const std::string& t) { r.batch = whole(t, 1, 1 << 20); },
                [](const run_request& r) { return fmt::format("{}", r.batch); }},
    request_key{"text", "FILE", "Data", false, true,
                "file to train on; default: generated text of known entropy",
                [](run_request& r, const std::string& t) { r.text_file = t; },
                [](const run_request& r) { return r.text_file; }},
    request_key{"tokens", "FILE", "Data", false, true,
                "ids to train the model of --init on: one array of U16, U32, I32 or I64",
                [](run_request& r, const std::string& t) { r.tokens_file = t; },
                [](const run_request& r) { return r.tokens_file; }},
    request_key{"task", "TASK", "Data", true, false,
                "paper: the teacher's output and noise; teacher: that output scaled to rms 1, and "
                "noise (paper)",
                [](run_request& r, const std::string& t) { r.task = read_word(t, tasks); },
                [](const run_request& r) { return print_word(r.task, tasks); }},
    request_key{"noise", "SIGMA", "Data", true, false, "deviation of the noise of labels (0.005)",
                [](run_request& r, const std::string& t) { r.noise = parsed<double>(t, 0, 1e6); },
                [](const run_request& r) { return fmt::format("{}", r.noise); }},
    request_key{
        "data", "FILE", "Data", true, false,
        "safetensors with the batches: x and y, steps x batch x width; without y the teacher "
        "makes it, with the weights of the file (teacher.0.fc1.weight, ...) if it has them",
        [](run_request& r, const std::string& t) { r.data_file = t; },
        [](const run_request& r) { return r.data_file; }},
    request_key{"seed", "N", "Data", true, true,
                "of parameters, teacher, batches, noise and stochastic rounding (1)",
                [](run_request& r, const std::string& t) { r.seed = whole(t, 0, most_seed); },
                [](const run_request& r) { return fmt::format("{}", r.seed); }},
    request_key{"init-seed", "N", "Data", true, true, "of parameters instead (--seed)",
                [](run_request& r, const std::string& t) { r.init_seed = seed_or_none(t); },
                [](const run_request& r) { return text_of_seed(r.init_seed); }},
    request_key{"data-seed", "N", "Data", true, true,
                "of teacher, batches and the noise of labels instead (--seed)",
                [](run_request& r, const std::string& t) { r.data_seed = seed_or_none(t); },
                [](const run_request& r) { return text_of_seed(r.data_seed); }},
    request_key{"stream", "NAME", "Data", true, false,
                "who draws parameters, teacher and inputs from the seed: mx, or torch: as PyTorch "
                "does on an x86-64 CPU after torch.manual_seed, bit for bit (mx)",
                [](run_request& r, const std::string& t) { r.stream = read_word(t, streams); },
                [](const run_request& r) { return print_word(r.stream, streams); }},
    request_key{"loss", "LOSS", "Optimizer", true, false,
                "mse, or kl: divergence of softmax from the teacher's, without noise (mse)",
                [](run_request& r, const std::string& t) { r.loss = read_word(t, losses); },
                [](const run_request& r) { return print_word(r.loss, losses); }},
    request_key{
        "temperature", "T", "Optimizer", true, false, "of --loss kl (1)",
        [](run_request& r, const std::string& t) { r.temperature = parsed<double>(t, 1e-3, 1e3); },
        [](const run_request& r) { return fmt::format("{}", r.temperature); }},
    request_key{"optimizer", "NAME", "Optimizer", true, true, "adam or sgd (adam)",
                [](run_request& r, const std::string& t) { r.by = read_word(t, optimizers); },
                [](const run_request& r) { return print_word(r.by, optimizers); }},
    request_key{"lr", "RATE", "Optimizer", true, true, "learning rate (0.001)",
                [](run_request& r, const std::string& t) { r.rate = parsed<double>(t, 0, 1e6); },
                [](const run_request& r) { return fmt::format("{}", r.rate); }},
    request_key{
        "lr-min", "RATE", "Optimizer", true, true, "where --cosine ends (1e-05)",
        [](run_request& r, const std::string& t) { r.least_rate = parsed<double>(t, 0, 1e6); },
        [](const run_request& r) { return fmt::format("{}", r.least_rate); }},
    request_key{
        "cosine-steps", "N", "Optimizer", true, true,
        "length of the cosine if not all steps; 0: constant rate (0)",
        [](run_request& r, const std::string& t) { r.cosine_steps = whole(t, 0, most_steps); },
        [](const run_request& r) { return fmt::format("{}", r.cosine_steps); }},
    request_key{
        "warmup", "N", "Optimizer", true, true,
        "steps in which the rate grows linearly from 0 (0; language models: a fifth of all)",
        [](run_request& r, const std::string& t) { r.warmup_steps = whole(t, 0, most_steps); },
        [](const run_request& r) { return fmt::format("{}", r.warmup_steps); }},
    request_key{"balance", "A", "Optimizer", false, true,
                "weight of the term that keeps experts evenly used: A N sum f P, of the shares of "
                "choices f and the mean probabilities P (0.01; with --init MODEL 0)",
                [](run_request& r, const std::string& t) { r.balance = parsed<double>(t, 0, 1e6); },
                [](const run_request& r) { return fmt::format("{}", r.balance); }},
    request_key{"clip", "NORM", "Optimizer", true, true,
                "norm that the gradient is clipped to; 0: none (0; language models: 1)",
                [](run_request& r, const std::string& t) { r.clip = parsed<double>(t, 0, 1e30); },
                [](const run_request& r) { return fmt::format("{}", r.clip); }},
    request_key{
        "beta2", "B", "Optimizer", true, true, "of Adam (0.999; language models: 0.95)",
        [](run_request& r, const std::string& t) { r.adam.beta2 = parsed<double>(t, 0, 0.999999); },
        [](const run_request& r) { return fmt::format("{}", r.adam.beta2); }},
    request_key{
        "adam-eps", "EPS", "Optimizer", true, true, "of Adam (1e-8)",
        [](run_request& r, const std::string& t) { r.adam.eps = parsed<double>(t, 1e-30, 1); },
        [](const run_request& r) { return fmt::format("{}", r.adam.eps); }},
    request_key{
        "weight-decay", "W", "Optimizer", true, true, "of weights, as in AdamW (0)",
        [](run_request& r, const std::string& t) { r.adam.decay = parsed<double>(t, 0, 1e6); },
        [](const run_request& r) { return fmt::format("{}", r.adam.decay); }},
    request_key{"steps", "N", "Optimizer", true, true, "updates, in total (1000)",
                [](run_request& r, const std::string& t) { r.steps = whole(t, 1, most_steps); },
                [](const run_request& r) { return fmt::format("{}", r.steps); }},
    request_key{
        "probe-every", "N", "Output", true, true,
        "steps between probes: the gradient compared with float32 at the same parameters and "
        "batch, and blocks of gains, weights and activations",
        [](run_request& r, const std::string& t) { r.probe_every = whole(t, 0, most_steps); },
        [](const run_request& r) { return fmt::format("{}", r.probe_every); }},
    request_key{
        "probe-draws", "N", "Output", true, true,
        "redraws of a probe under stochastic rounding (4)",
        [](run_request& r, const std::string& t) { r.probe_draws = parsed<int>(t, 1, 1000); },
        [](const run_request& r) { return fmt::format("{}", r.probe_draws); }},
};

// The request keys that --at takes as well, and what else it takes.
constexpr std::array<std::string_view, 5> update_keys{"lr", "clip", "beta2", "adam-eps",
                                                      "weight-decay"};
constexpr std::string_view moments_key = "moments", skip_key = "skip";

bool changes_update(std::string_view key) {
    return key == moments_key || key == skip_key ||
           std::ranges::find(update_keys, key) != update_keys.end();
}

void apply_to_update(update_state& s, const setting& change, std::uint64_t after) {
    if (change.key == moments_key) {
        if (change.value != "reset") base::refuse("moments={}: give reset", change.value);
        s.moments_from = after;
    } else if (change.key == skip_key) {
        s.skipped += whole(change.value, 1, most_steps);
    } else {
        const auto key = std::ranges::find(request_rows, change.key, &request_key::name);
        set_key(s.by, *key, change.value);
    }
}

std::string text_of(const intervention& i) {
    const char* const between = i.settings.empty() || i.update.empty() ? "" : " ";
    return fmt::format("{} {}{}{}", i.after, to_string(i.settings), between, to_string(i.update));
}

}  // namespace

std::span<const request_key> request_keys() { return request_rows; }

std::string_view name_of(model_kind m) {
    return std::ranges::find(models, m, &word<model_kind>::value)->name;
}

run_request request_for(const std::string& model, const std::string& size) {
    run_request r;
    r.model = base::row_named(models, "model", model).value;
    if (r.model == model_kind::proxy) {
        if (!size.empty()) base::refuse("--size: the proxy has --width and --depth");
        return r;
    }
    const model_size& s = base::row_named(model_sizes, "size", size.empty() ? "tiny" : size);
    const bool olmo = r.model == model_kind::olmo;
    r.shape = {s.width, s.depth, olmo ? activation::gelu : activation::swiglu,
               olmo ? norm_kind::layer : norm_kind::rms};
    r.heads = s.heads;
    r.context = s.context;
    r.qk_norm = olmo;
    r.batch = s.batch;
    r.rate = s.rate;
    r.least_rate = -1;
    r.adam.beta2 = 0.95;
    r.clip = 1;
    r.cosine_steps = r.warmup_steps = unset_steps;
    return r;
}

void fit_schedule(run_request& r) {
    constexpr std::size_t usual_sequences = 4;
    if (r.batch == 0) r.batch = usual_sequences * r.context;
    if (r.least_rate < 0) r.least_rate = r.rate / 10;
    if (r.cosine_steps == unset_steps) r.cosine_steps = r.steps;
    if (r.warmup_steps == unset_steps) r.warmup_steps = r.steps / 5;
}

namespace {

constexpr std::size_t usual_context = 256;  // of trainings that go on from a model
constexpr double usual_rate = 1e-4;

llm::model_shape model_shape_of(const run_request& r) {
    return llm::shape_of_config(r.config, llm::naming::hugging_face, r.init_file);
}

}  // namespace

void begin_with_model(run_request& r, const std::string& init) {
    if (r.model != model_kind::llama) {
        base::refuse("--tokens: {} has a vocabulary of bytes; give mx train llama --init MODEL",
                     name_of(r.model));
    }
    if (init.empty()) base::refuse("--tokens: name the model whose ids they are with --init MODEL");
    const llm::model_weights model(init);
    const llm::model_shape& s = model.shape();
    if (model.has({llm::role::rope_factors})) {
        throw base::error(base::error_kind::input,
                          "divides frequencies of positions, which mx train does not compute; the "
                          "model's safetensors state them in config.json",
                          {model.path(), model.name({llm::role::rope_factors}), {}});
    }
    r.init_file = init;
    r.config = llm::config_of(s);
    r.context = s.context == 0 ? usual_context : std::min(s.context, usual_context);
    const language_shape shape = language_shape_of(s, r.context, model.path());
    r.shape = {shape.width, shape.depth, shape.phi, shape.norm};
    r.heads = shape.heads;
    r.key_heads = shape.key_heads;
    r.qk_norm = shape.norm_of_qk != llm::qk_norm::none;
    r.experts = shape.routing.count;
    r.experts_used = std::max<std::size_t>(shape.routing.used, 1);
    r.balance = 0;
    r.batch = 0;  // until fit_schedule()
    r.rate = usual_rate;
}

language_shape language_shape_of(const run_request& r) {
    if (!r.config.empty()) {
        language_shape s = language_shape_of(model_shape_of(r), r.context, r.init_file);
        s.routing.balance = static_cast<float>(r.balance);
        return s;
    }
    language_shape s;
    s.width = r.shape.width;
    s.depth = r.shape.depth;
    s.heads = r.heads;
    s.key_heads = r.key_heads == 0 ? r.heads : r.key_heads;
    s.context = r.context;
    s.phi = r.shape.phi;
    s.norm = r.shape.norm;
    s.norm_of_qk = r.qk_norm ? llm::qk_norm::all_heads : llm::qk_norm::none;
    s.head_kept = r.model == model_kind::llama;
    if (r.experts != 0) {
        s.routing = {r.experts, r.experts_used, true, static_cast<float>(r.balance)};
        s.hidden_size = (s.hidden() / r.experts_used + 31) / 32 * 32;
    }
    return s;
}

void set_key(run_request& r, const request_key& key, const std::string& text) {
    if (!(r.model == model_kind::proxy ? key.proxy : key.language)) {
        base::refuse("--{}: is no option of {}", key.name, name_of(r.model));
    }
    try {
        key.set(r, text);
    } catch (const base::error& e) {
        base::refuse("--{}: {}", key.name, e.message());
    }
}

intervention parse_intervention(const std::string& text) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos) {
        base::refuse("--at {}: give a step and settings, as in --at 500 'all=mxfp8'", text);
    }
    intervention i;
    try {
        i.after = whole(text.substr(0, blank), 0, most_steps);
        std::string of_precision;
        std::istringstream words(text.substr(blank + 1));
        for (std::string word; words >> word;) {
            const std::size_t equals = word.find('=');
            const std::string key = word.substr(0, equals);
            if (equals == std::string::npos || !changes_update(key)) {
                of_precision += word + " ";
                continue;
            }
            i.update.push_back({key, word.substr(equals + 1), {}});
            update_state tried;
            apply_to_update(tried, i.update.back(), i.after);
        }
        i.settings = parse_settings(of_precision);
        if (i.settings.empty() && i.update.empty()) base::refuse("no setting is given");
    } catch (const base::error& e) {
        base::refuse("--at {}: {}", text, e.message());
    }
    return i;
}

namespace {

void check_language(const run_request& r) {
    const std::size_t key_heads = r.key_heads == 0 ? r.heads : r.key_heads;
    if (r.config.empty() != r.tokens_file.empty()) {
        base::refuse("--tokens and a model with --init: one needs the other");
    }
    if (!r.config.empty()) {
        if (!r.text_file.empty()) base::refuse("--text and --tokens: give one of them");
        const std::size_t most = model_shape_of(r).context;
        if (most != 0 && r.context > most) {
            base::refuse("--context {}: the model has positions for {}", r.context, most);
        }
    } else if (r.shape.width % (2 * r.heads) != 0) {
        base::refuse("--heads {}: --width {} does not give each an even number of features",
                     r.heads, r.shape.width);
    }
    if (r.config.empty() && r.heads % key_heads != 0) {
        base::refuse("--key-heads {}: does not divide --heads {}", key_heads, r.heads);
    }
    if (r.experts != 0 && r.experts_used > r.experts) {
        base::refuse("--experts-per-token {}: there are {} experts", r.experts_used, r.experts);
    }
    if (r.batch % r.context != 0) {
        base::refuse("--batch {}: is no multiple of --context {}", r.batch, r.context);
    }
    if (r.shape.norm == norm_kind::none)
        base::refuse("--norm none: {} has norms", name_of(r.model));
}

}  // namespace

void check(const run_request& r) {
    if (r.model != model_kind::proxy) check_language(r);
    if (r.cosine_steps != 0 && r.warmup_steps >= r.cosine_steps) {
        base::refuse("--warmup {}: the cosine ends after {} steps", r.warmup_steps, r.cosine_steps);
    }
    if (r.least_rate > r.rate && r.cosine_steps != 0) {
        base::refuse("--lr-min {} lies above --lr {}", r.least_rate, r.rate);
    }
    if (r.loss == loss_kind::kl && !r.data_file.empty()) {
        base::refuse("--loss kl learns from a teacher, --data has labels: leave one out");
    }
    if (r.stream == stream_kind::torch) {
        if (r.begin != start::pytorch) base::refuse("--stream torch: needs --start pytorch");
        if (r.batch * r.shape.width < torch_stream::least_normal) {
            base::refuse("--stream torch: a batch has at least {} numbers",
                         torch_stream::least_normal);
        }
    }
    if (r.shape.norm == norm_kind::none && r.least_gain != r.most_gain) {
        base::refuse("--init-gain: there are no norms");
    }
    // Every intervention must give a consistent precision.
    const std::vector<layer_name> layers = layers_of(r);
    const auto check_precision = [&](const std::vector<setting>& settings) {
        if (precision_of(settings, layers).teacher_quantized && r.model != model_kind::proxy) {
            base::refuse("teacher=quantized: {} has no teacher; leave it out", name_of(r.model));
        }
    };
    const auto check_decay = [](const run_request& by) {
        if (by.by != optimizer::sgd || by.adam.decay == 0) return;
        base::refuse("--weight-decay {}: sgd has none; leave it out, or use adam", by.adam.decay);
    };
    check_precision(r.settings);
    check_decay(r);
    for (const intervention& i : r.interventions) {
        check_precision(settings_after(r, i.after));
        const run_request by = update_after(r, i.after).by;
        check_decay(by);
        if (by.least_rate > by.rate && by.cosine_steps != 0) {
            base::refuse("--at {} lr={}: lies below --lr-min {}", i.after, by.rate, by.least_rate);
        }
    }
}

std::map<std::string, std::string> to_text(const run_request& r) {
    std::map<std::string, std::string> text;
    text["model"] = name_of(r.model);
    for (const request_key& key : request_rows) {
        const bool has = r.model == model_kind::proxy ? key.proxy : key.language;
        if (has) text[std::string(key.name)] = key.get(r);
    }
    for (const auto& [key, value] : r.config) text[std::string(config_beginning) + key] = value;
    text["precision"] = to_string(r.settings);
    for (std::size_t i = 0; i < r.interventions.size(); ++i) {
        text[fmt::format("at.{:04}", i)] = text_of(r.interventions[i]);
    }
    if (r.nudge != 0) {
        text["nudge"] = fmt::format("{}", r.nudge);
        text["nudge-after"] = fmt::format("{}", r.nudge_after);
    }
    return text;
}

run_request from_text(const std::map<std::string, std::string>& text) {
    run_request r;
    const auto model =
        text.find("model");  // absent in runs recorded before language models existed
    if (model != text.end()) r.model = read_word(model->second, models);
    for (const auto& [name, value] : text) {
        if (name == "model") continue;
        if (name == "precision") {
            r.settings = parse_settings(value);
        } else if (name.starts_with(config_beginning)) {
            r.config[name.substr(config_beginning.size())] = value;
        } else if (name.rfind("at.", 0) == 0) {
            r.interventions.push_back(parse_intervention(value));
        } else if (name == "nudge") {
            r.nudge = whole(value, 1, most_steps);
        } else if (name == "nudge-after") {
            r.nudge_after = whole(value, 0, most_steps);
        } else {
            const std::string& wanted = name;  // clang 14 cannot capture structured bindings
            const auto key = std::ranges::find(request_rows, wanted, &request_key::name);
            if (key == request_rows.end()) base::refuse("an unknown entry '{}'", name);
            set_key(r, *key, value);
        }
    }
    return r;
}

namespace {

// Recipes may name matrices.
void require_recipes_inside(const std::vector<setting>& settings) {
    for (const setting& s : settings) {
        precision p;
        apply(p, s);
        std::vector<operand_rule> rules{p.gain, p.norm_input, p.norm_output};
        for (const auto& of_stage : p.operands) {
            rules.insert(rules.end(), of_stage.begin(), of_stage.end());
        }
        for (const operand_rule& rule : rules) {
            if (rule.recipe && rule.recipe->blocks) {
                codec::require_files_inside(*rule.recipe->blocks);
            }
        }
    }
}

}  // namespace

void settle_files(run_request& r, const named_files& named) {
    for (const auto& [key, path] :
         {std::pair("text", &r.text_file), std::pair("tokens", &r.tokens_file),
          std::pair("data", &r.data_file)}) {
        const auto own = named.find(key);
        if (own != named.end() && path->empty())
            base::refuse("--{}: the run reads no such file", key);
        if (own != named.end()) {
            *path = own->second;
        } else if (!path->empty() && !base::stays_inside(*path)) {
            base::refuse("trains on '{}', which is not below this folder: name the file with --{}",
                         *path, key);
        }
    }
    require_recipes_inside(r.settings);
    for (const intervention& i : r.interventions) require_recipes_inside(i.settings);
}

std::vector<setting> settings_after(const run_request& r, std::uint64_t done) {
    std::vector<setting> all = r.settings;
    for (const intervention& i : r.interventions) {
        if (i.after <= done) all.insert(all.end(), i.settings.begin(), i.settings.end());
    }
    return all;
}

update_state update_after(const run_request& r, std::uint64_t done) {
    update_state s{r};
    for (const intervention& i : r.interventions) {
        if (i.after > done) continue;
        for (const setting& change : i.update) apply_to_update(s, change, i.after);
    }
    return s;
}

double rate_of(const run_request& r, std::uint64_t step) {
    if (step < r.warmup_steps) {
        return r.rate * static_cast<double>(step) / static_cast<double>(r.warmup_steps);
    }
    if (r.cosine_steps == 0) return r.rate;
    // The cosine starts at the first step with the full learning rate.
    const std::uint64_t begin = std::max<std::uint64_t>(r.warmup_steps, 1);
    const std::uint64_t length = r.cosine_steps - (begin - 1);
    const std::uint64_t at = std::min(step - begin, length);
    const double half_turns = static_cast<double>(at) / static_cast<double>(length);
    return r.least_rate +
           (r.rate - r.least_rate) * 0.5 * (1 + simd::cosine_of_turns(0.5 * half_turns));
}

}  // namespace mx::lab
