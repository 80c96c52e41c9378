// SPDX-License-Identifier: Apache-2.0
#include "libmx/llm/model_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::llm {
namespace {

constexpr std::size_t most_experts = std::size_t{1} << 16;
constexpr std::size_t most_extent = std::size_t{1} << 24;

// Entries of a configuration, each to be taken once.
class config {
  public:
    config(const io::config_entries& entries, std::string file, std::string_view prefix,
           bool narrow)
        : entries_(entries), file_(std::move(file)), prefix_(prefix), narrow_(narrow) {}

    [[noreturn]] void fail(std::string_view key, const std::string& message) const {
        throw base::error(base::error_kind::input, fmt::format("'{}{}': {}", prefix_, key, message),
                          {file_, {}, {}});
    }
    const std::string* find(std::string_view key) {
        const auto at = entries_.find(fmt::format("{}{}", prefix_, key));
        if (at == entries_.end()) return nullptr;
        taken_.insert(at->first);
        return &at->second;
    }
    std::optional<double> number(std::string_view key) {
        const std::string* const text = find(key);
        if (text == nullptr) return std::nullopt;
        double value = 0;
        const char* const end = text->data() + text->size();
        // GGUF has float32 numbers, whose shortest spelling is that of another float64 number.
        float single = 0;
        const auto [at, code] = narrow_ && text->find_first_of(".e") != std::string::npos
                                    ? std::from_chars(text->data(), end, single)
                                    : std::from_chars(text->data(), end, value);
        if (code != std::errc() || at != end || !std::isfinite(value)) {
            fail(key, fmt::format("'{}' is not a number", *text));
        }
        if (single != 0) value = static_cast<double>(single);
        return value;
    }
    std::optional<double> positive(std::string_view key) {
        const std::optional<double> x = number(key);
        if (x && !(*x > 0)) fail(key, fmt::format("{} is not positive", *x));
        return x;
    }
    std::optional<std::size_t> extent(std::string_view key) {
        const std::optional<double> x = number(key);
        if (!x) return std::nullopt;
        if (*x < 0 || *x > static_cast<double>(most_extent) || *x != std::floor(*x)) {
            fail(key, fmt::format("{} is not a whole number up to {}", *x, most_extent));
        }
        return static_cast<std::size_t>(*x);
    }
    std::size_t required(std::string_view key) {
        const std::optional<std::size_t> x = extent(key);
        if (!x) fail(key, "is missing; mx eval needs it");
        if (*x == 0) fail(key, "is 0");
        return *x;
    }
    std::optional<bool> flag(std::string_view key) {
        const std::string* const text = find(key);
        if (text == nullptr) return std::nullopt;
        if (*text != "true" && *text != "false") fail(key, fmt::format("'{}'", *text));
        return *text == "true";
    }
    std::vector<std::string> list(std::string_view key) {
        std::vector<std::string> all;
        for (std::size_t i = 0;; ++i) {
            const std::string* const one = find(fmt::format("{}.{}", key, i));
            if (one == nullptr) return all;
            all.push_back(*one);
        }
    }
    // An entry that must have this value, or be absent.
    void only(std::string_view key, std::string_view value) {
        const std::string* const text = find(key);
        if (text != nullptr && *text != value) {
            fail(key,
                 fmt::format("'{}' changes the arithmetic in a way that mx does not know", *text));
        }
    }
    void only_number(std::string_view key, double value) {
        const std::optional<double> x = number(key);
        if (x && *x != value) only(key, "");
    }
    void ignore(std::string_view key) { ignored_.push_back(key); }
    // Refuses what nobody took.
    void finish() const {
        for (const auto& [key, text] : entries_) {
            if (!key.starts_with(prefix_) || taken_.contains(key)) continue;
            const std::string_view own = std::string_view(key).substr(prefix_.size());
            const bool known = std::ranges::any_of(ignored_, [&](std::string_view k) {
                return own == k || (own.starts_with(k) && own[k.size()] == '.');
            });
            if (!known) {
                fail(own, fmt::format("'{}': mx does not know what this key does to the "
                                      "arithmetic",
                                      text));
            }
        }
    }

  private:
    const io::config_entries& entries_;
    std::string file_;
    std::string prefix_;
    bool narrow_;
    std::set<std::string> taken_;
    std::vector<std::string_view> ignored_;
};

// Keys of config.json that do not change the values of a forward pass.
constexpr std::array ignored_keys{"_name_or_path",
                                  "_commit_hash",
                                  "_attn_implementation",
                                  "_attn_implementation_autoset",
                                  "architectures",
                                  "attention_dropout",
                                  "attn_implementation",
                                  "auto_map",
                                  "bos_token_id",
                                  "cache_implementation",
                                  "dtype",
                                  "embd_pdrop",
                                  "eos_token_id",
                                  "hidden_dropout",
                                  "initializer_range",
                                  "is_llama_config",
                                  "model_type",
                                  "output_router_logits",
                                  "pad_token_id",
                                  "quantization_config",
                                  "compression_config",
                                  "resid_pdrop",
                                  "rope_interleaved",
                                  "router_aux_loss_coef",
                                  "router_jitter_noise",
                                  "torch_dtype",
                                  "transformers.js_config",
                                  "transformers_version",
                                  "unsloth_fixed",
                                  "unsloth_version",
                                  "use_cache",
                                  "task_specific_params",
                                  "tokenizer_class",
                                  "vocab_file",
                                  "chunk_size_feed_forward",
                                  "is_decoder",
                                  "add_cross_attention",
                                  "problem_type",
                                  "return_dict",
                                  "output_hidden_states",
                                  "output_attentions",
                                  "torchscript",
                                  "max_new_tokens",
                                  "id2label",
                                  "label2id",
                                  "_model_name_or_path",
                                  "cls_token_id",
                                  "decoder_start_token_id",
                                  "finetuning_task",
                                  "mask_token_id",
                                  "pruned_heads",
                                  "sep_token_id",
                                  "tf_legacy_loss",
                                  "unk_token_id",
                                  "use_bfloat16"};

// Keys of Gemma 3 with images that are about these.
constexpr std::array keys_of_images{"boi_token_id",        "boi_token_index", "eoi_token_id",
                                    "eoi_token_index",     "image_token_id",  "image_token_index",
                                    "mm_tokens_per_image", "vision_config"};

// What Gemma3TextConfig of transformers takes where text_config has no such key.
constexpr std::array<std::pair<const char*, const char*>, 11> defaults_of_gemma3_text{
    {{"model_type", "gemma3_text"},
     {"vocab_size", "262208"},
     {"hidden_size", "2304"},
     {"intermediate_size", "9216"},
     {"num_hidden_layers", "26"},
     {"num_attention_heads", "8"},
     {"num_key_value_heads", "4"},
     {"head_dim", "256"},
     {"rms_norm_eps", "1e-6"},
     {"sliding_window", "4096"},
     {"bos_token_id", "2"}}};

// Keys that mx knows with one value only; "" for those that must be absent or null.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> fixed_keys{
    {{"is_encoder_decoder", "false"},
     {"attn_logit_softcapping", ""},
     {"final_logit_softcapping", ""},
     {"clip_qkv", ""},
     {"logit_scale", ""},
     {"use_mrope", "false"},
     {"embedding_multiplier", ""},
     {"residual_multiplier", ""},
     {"use_bidirectional_attention", "false"}}};

// Keys of GGUF below the architecture's name that do not change the values of a forward pass.
constexpr std::array ignored_gguf_keys{"vocab_size", "attention.causal_default",
                                       "tensor_data_layout"};

void read_rope(config& c, model_shape& s, const std::string& at) {
    const auto key = [&](std::string_view name) { return fmt::format("{}.{}", at, name); };
    std::string what = "default";
    for (const char* name : {"rope_type", "type"}) {
        if (const std::string* text = c.find(key(name))) what = *text;
    }
    if (const auto base = c.positive(key("rope_theta"))) s.rope_base = *base;
    c.only_number(key("partial_rotary_factor"), 1);
    if (what == "default") return;
    if (what != "linear" && what != "llama3") {
        c.fail(key("rope_type"),
               fmt::format("'{}' is not known; mx knows default, linear, llama3", what));
    }
    s.scaling.factor = c.positive(key("factor")).value_or(1);
    if (what == "linear") return;
    s.scaling.low = c.positive(key("low_freq_factor")).value_or(1);
    s.scaling.high = c.positive(key("high_freq_factor")).value_or(4);
    s.scaling.original = c.positive(key("original_max_position_embeddings")).value_or(8192);
    if (!(s.scaling.high > s.scaling.low)) c.fail(key("high_freq_factor"), "is not the larger one");
}

void read_gate(config& c, model_shape& s, std::string_view key) {
    const std::string* const text = c.find(key);
    if (text == nullptr) return;
    if (*text == "silu" || *text == "swish") {
        s.gate = gate_function::silu;
    } else if (*text == "gelu_pytorch_tanh" || *text == "gelu_tanh") {
        s.gate = gate_function::gelu_tanh;
    } else {
        c.fail(key, fmt::format("'{}' is not known; mx knows silu and gelu_pytorch_tanh", *text));
    }
}

model_shape shape_of_json(config& c, const architecture& kind) {
    model_shape s;
    s.kind = &kind;
    s.names = naming::hugging_face;
    for (const char* key : ignored_keys) c.ignore(key);
    s.width = c.required("hidden_size");
    s.depth = c.required("num_hidden_layers");
    s.heads = c.required("num_attention_heads");
    s.key_heads = c.extent("num_key_value_heads").value_or(s.heads);
    s.head_size = c.extent("head_dim").value_or(s.width / s.heads);
    s.vocabulary = c.required("vocab_size");
    s.hidden = c.required("intermediate_size");
    s.context = c.extent("max_position_embeddings").value_or(0);
    const std::optional<double> eps = c.positive("rms_norm_eps");
    if (!eps) c.fail("rms_norm_eps", "is missing; mx eval needs it");
    s.eps = *eps;
    const bool gemma = kind.scaled_embedding;
    s.rope_base = c.positive("rope_theta").value_or(gemma ? 1e6 : 1e4);
    c.only_number("partial_rotary_factor", 1);
    for (const char* at : {"rope_scaling", "rope_parameters"}) read_rope(c, s, at);
    if (gemma) {
        // Nested by kind of layer since version 5 of transformers.
        read_rope(c, s, "rope_parameters.full_attention");
        s.local_rope_base = c.positive("rope_local_base_freq").value_or(1e4);
        model_shape local;
        local.rope_base = s.local_rope_base;
        read_rope(c, local, "rope_parameters.sliding_attention");
        s.local_rope_base = local.rope_base;
        s.score_scale = 1 / std::sqrt(c.positive("query_pre_attn_scalar").value_or(256));
        s.gate = gate_function::gelu_tanh;
    }
    read_gate(c, s, "hidden_act");
    read_gate(c, s, "hidden_activation");
    s.tied = c.flag("tie_word_embeddings").value_or(gemma);
    s.query_bias = kind.query_bias;
    if (c.flag("attention_bias").value_or(false)) s.query_bias = s.output_bias = true;
    c.only("mlp_bias", "false");
    c.only_number("pretraining_tp", 1);
    for (const auto& [key, value] : fixed_keys) c.only(key, value);
    const std::size_t window = c.extent("sliding_window").value_or(0);
    const bool used =
        c.flag("use_sliding_window")
            .value_or(kind.name.starts_with("mistral") || kind.name == "mixtral" || gemma);
    const std::optional<std::size_t> full = c.extent("max_window_layers");
    const std::vector<std::string> types = c.list("layer_types");
    const std::optional<std::size_t> pattern = c.extent("sliding_window_pattern");
    const auto also = c.extent("_sliding_window_pattern");
    if (!types.empty()) {
        if (types.size() != s.depth) c.fail("layer_types.0", "there are not as many as layers");
        for (const std::string& t : types) {
            if (t != "full_attention" && t != "sliding_attention") {
                c.fail("layer_types.0", fmt::format("'{}' is not known", t));
            }
            s.windowed.push_back(t == "sliding_attention");
        }
        s.window = window;
    } else if (window != 0 && used) {
        s.window = window;
        const std::size_t every = pattern.value_or(also.value_or(6));
        for (std::size_t i = 0; i < s.depth; ++i) {
            if (gemma) {
                s.windowed.push_back(every == 0 || (i + 1) % every != 0);
            } else if (full) {
                s.windowed.push_back(i >= *full);
            }
        }
    }
    if (kind.experts) {
        s.experts = c.extent("num_local_experts").value_or(0);
        if (s.experts == 0) s.experts = c.required("num_experts");
        s.experts_used = c.required("num_experts_per_tok");
        s.hidden = c.extent("moe_intermediate_size").value_or(s.hidden);
        s.experts_renormalized = c.flag("norm_topk_prob").value_or(kind.experts_renormalized);
        c.only_number("decoder_sparse_step", 1);
        c.only("mlp_only_layers.0", "");
        c.only_number("shared_expert_intermediate_size", 0);
    }
    return s;
}

model_shape shape_of_gguf(config& c, const architecture& kind) {
    model_shape s;
    s.kind = &kind;
    s.names = naming::gguf;
    s.pairs = kind.gguf_pairs;
    s.query_bias = kind.query_bias;
    for (const char* key : ignored_gguf_keys) c.ignore(key);
    s.width = c.required("embedding_length");
    s.depth = c.required("block_count");
    s.heads = c.required("attention.head_count");
    s.key_heads = c.extent("attention.head_count_kv").value_or(s.heads);
    s.head_size = c.extent("attention.key_length").value_or(s.width / s.heads);
    if (c.extent("attention.value_length").value_or(s.head_size) != s.head_size) {
        c.fail("attention.value_length", "is not attention.key_length");
    }
    s.hidden = c.extent("feed_forward_length").value_or(0);
    s.context = c.extent("context_length").value_or(0);
    const std::optional<double> eps = c.positive("attention.layer_norm_rms_epsilon");
    if (!eps) c.fail("attention.layer_norm_rms_epsilon", "is missing; mx eval needs it");
    s.eps = *eps;
    s.rope_base = c.positive("rope.freq_base").value_or(1e4);
    if (c.extent("rope.dimension_count").value_or(s.head_size) != s.head_size) {
        c.fail("rope.dimension_count", "is not the size of a head");
    }
    if (const std::string* what = c.find("rope.scaling.type"); what != nullptr && *what != "none") {
        if (*what != "linear") c.fail("rope.scaling.type", fmt::format("'{}' is not known", *what));
        s.scaling.factor = c.positive("rope.scaling.factor").value_or(1);
    }
    if (kind.scaled_embedding) {
        s.gate = gate_function::gelu_tanh;
        s.local_rope_base = c.positive("rope.freq_base_swa").value_or(1e4);
        s.window = c.extent("attention.sliding_window").value_or(0);
        for (std::size_t i = 0; i < s.depth; ++i) s.windowed.push_back((i + 1) % 6 != 0);
    }
    if (kind.experts || c.extent("expert_count").value_or(0) != 0) {
        if (!kind.experts) {  // Mixtral, which is "llama" in GGUF
            const auto own = std::ranges::find_if(architectures, [&](const architecture& a) {
                return a.experts && a.gguf == kind.gguf;
            });
            if (own != architectures.end()) s.kind = &*own;
        }
        s.experts = c.required("expert_count");
        s.experts_used = c.required("expert_used_count");
        s.hidden = c.extent("expert_feed_forward_length").value_or(s.hidden);
        // llama.cpp divides by the sum in both.
        s.experts_renormalized = true;
    }
    if (s.hidden == 0) c.fail("feed_forward_length", "is missing; mx eval needs it");
    return s;
}

void check(const config& c, const model_shape& s) {
    if (s.key_heads == 0 || s.heads % s.key_heads != 0) {
        c.fail("num_key_value_heads",
               fmt::format("{} does not divide the {} heads", s.key_heads, s.heads));
    }
    if (s.head_size == 0 || s.head_size % 2 != 0) {
        c.fail("head_dim", fmt::format("{} is not an even number of features", s.head_size));
    }
    if (s.experts > most_experts) {
        c.fail("num_experts", fmt::format("{} is more than mx reads, {}", s.experts, most_experts));
    }
    if (s.experts_used > s.experts) c.fail("num_experts_per_tok", "is more than there are");
}

}  // namespace

double model_shape::scale_of_scores() const {
    return score_scale != 0 ? score_scale : 1 / std::sqrt(static_cast<double>(head_size));
}

model_shape shape_of_config(const io::config_entries& entries, naming names,
                            const std::string& file) {
    const bool gguf = names == naming::gguf;
    const char* const key = gguf ? "general.architecture" : "model_type";
    const auto named = entries.find(key);
    const std::string type = named == entries.end() ? std::string() : named->second;
    std::vector<std::string_view> known;
    for (const architecture& a : architectures) {
        const std::string_view name = gguf ? a.gguf : a.name;
        if (name.empty()) continue;
        if (std::ranges::find(known, name) == known.end()) known.push_back(name);
        if (name != type) continue;
        config c(entries, file, gguf ? type + "." : "", gguf);
        const model_shape s = gguf ? shape_of_gguf(c, a) : shape_of_json(c, a);
        check(c, s);
        c.finish();
        return s;
    }
    throw base::error(base::error_kind::input,
                      type.empty()
                          ? fmt::format("'{}' is missing, which says what is computed", key)
                          : base::unknown(key, type, known),
                      {file, {}, {}});
}

io::config_entries text_config_of(io::config_entries entries, const std::string& file) {
    constexpr std::string_view nested = "text_config.";
    const auto type = entries.find("model_type");
    if (type == entries.end() || type->second != "gemma3") return entries;
    config around(entries, file, "", false);
    for (const char* key : ignored_keys) around.ignore(key);
    for (const char* key : keys_of_images) around.ignore(key);
    for (const char* key : {"text_config", "tie_word_embeddings"}) around.ignore(key);
    for (const auto& [key, value] : fixed_keys) around.only(key, value);
    around.finish();
    io::config_entries inner;
    for (const auto& [key, text] : entries) {
        if (key.starts_with(nested)) inner.emplace(key.substr(nested.size()), text);
    }
    for (const char* key : {"tie_word_embeddings", "bos_token_id"}) {
        if (const auto at = entries.find(key); at != entries.end()) inner.insert(*at);
    }
    for (const auto& [key, text] : defaults_of_gemma3_text) inner.emplace(key, text);
    return inner;
}

double scaled_frequency(const rope_scaling& scaling, double frequency) {
    constexpr double two_pi = 0x1.921fb54442d18p2;
    if (scaling.factor == 1) return frequency;
    if (scaling.low == 0) return frequency / scaling.factor;
    const double wave = two_pi / frequency;
    if (wave < scaling.original / scaling.high) return frequency;
    if (wave > scaling.original / scaling.low) return frequency / scaling.factor;
    const double smooth = (scaling.original / wave - scaling.low) / (scaling.high - scaling.low);
    return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

io::config_entries config_of(const model_shape& s) {
    io::config_entries all{{"model_type", std::string(s.kind->name)}};
    const auto add = [&](const char* key, const auto& value) {
        all.emplace(key, fmt::format("{}", value));
    };
    add("hidden_size", s.width);
    add("num_hidden_layers", s.depth);
    add("num_attention_heads", s.heads);
    add("num_key_value_heads", s.key_heads);
    add("head_dim", s.head_size);
    add("vocab_size", s.vocabulary);
    add("intermediate_size", s.hidden);
    if (s.context != 0) add("max_position_embeddings", s.context);
    add("rms_norm_eps", s.eps);
    add("hidden_act", "silu");
    add("tie_word_embeddings", s.tied);
    add("attention_bias", s.output_bias);
    add("rope_theta", s.rope_base);
    if (s.experts != 0) {
        add("num_local_experts", s.experts);
        add("num_experts_per_tok", s.experts_used);
        add("moe_intermediate_size", s.hidden);
        add("norm_topk_prob", s.experts_renormalized);
    }
    if (s.scaling.factor == 1) return all;
    add("rope_scaling.rope_type", s.scaling.low == 0 ? "linear" : "llama3");
    add("rope_scaling.factor", s.scaling.factor);
    if (s.scaling.low == 0) return all;
    add("rope_scaling.low_freq_factor", s.scaling.low);
    add("rope_scaling.high_freq_factor", s.scaling.high);
    add("rope_scaling.original_max_position_embeddings", s.scaling.original);
    return all;
}

model_shape shape_of_llama2c(std::size_t width, std::size_t key_width, std::size_t heads,
                             const std::string& file) {
    // https://huggingface.co/karpathy/tinyllamas: 260K, 15M, 42M, 110M.
    constexpr std::array<std::pair<std::size_t, std::size_t>, 4> published{
        {{64, 8}, {288, 6}, {512, 8}, {768, 12}}};
    model_shape s;
    s.kind = &architectures.front();
    s.names = naming::llama2c;
    s.pairs = rope_pairs::neighbours;
    s.width = width;
    s.heads = heads;
    s.eps = 1e-5;
    for (const auto& [w, n] : published) {
        if (s.heads == 0 && w == width) s.heads = n;
    }
    const bool fits = s.heads != 0 && width % s.heads == 0 && (width / s.heads) % 2 == 0 &&
                      key_width % (width / s.heads) == 0;
    if (!fits) {
        throw base::error(
            base::error_kind::input,
            fmt::format("tensors are named as in llama2.c, and there is no config.json that says "
                        "how many heads {} features are; say so with --heads N",
                        width),
            {file, {}, {}});
    }
    s.head_size = width / s.heads;
    s.key_heads = key_width / s.head_size;
    if (s.key_heads == 0 || s.heads % s.key_heads != 0) {
        throw base::error(base::error_kind::input,
                          fmt::format("{} key features do not fit {} heads of {}", key_width,
                                      s.heads, s.head_size),
                          {file, {}, {}});
    }
    return s;
}

}  // namespace mx::llm
