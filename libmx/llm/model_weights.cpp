// SPDX-License-Identifier: Apache-2.0
#include "libmx/llm/model_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>

#include "libmx/base/status.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::llm {
namespace {

/// THE LIST of names by convention: # stands for the layer, @ for the expert. "" where a convention
/// has no such tensor.
struct role_names {
    role what;
    std::string_view hugging_face, gguf, llama2c;
};

constexpr std::array names_of_roles{
    role_names{role::embedding, "model.embed_tokens.weight", "token_embd.weight",
               "tok_embeddings.weight"},
    role_names{role::head, "lm_head.weight", "output.weight", "output.weight"},
    role_names{role::last_norm, "model.norm.weight", "output_norm.weight", "norm.weight"},
    role_names{role::rope_factors, "", "rope_freqs.weight", ""},
    role_names{role::attention_norm, "model.layers.#.input_layernorm.weight",
               "blk.#.attn_norm.weight", "layers.#.attention_norm.weight"},
    role_names{role::query, "model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight",
               "layers.#.attention.wq.weight"},
    role_names{role::key, "model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight",
               "layers.#.attention.wk.weight"},
    role_names{role::value, "model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight",
               "layers.#.attention.wv.weight"},
    role_names{role::query_bias, "model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias", ""},
    role_names{role::key_bias, "model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias", ""},
    role_names{role::value_bias, "model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias", ""},
    role_names{role::query_norm, "model.layers.#.self_attn.q_norm.weight",
               "blk.#.attn_q_norm.weight", ""},
    role_names{role::key_norm, "model.layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight",
               ""},
    role_names{role::output, "model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight",
               "layers.#.attention.wo.weight"},
    role_names{role::output_bias, "model.layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias",
               ""},
    role_names{role::attention_out_norm, "model.layers.#.post_attention_layernorm.weight",
               "blk.#.post_attention_norm.weight", ""},
    // Of models with norms before and after; of others see hugging_face_name().
    role_names{role::mlp_norm, "model.layers.#.pre_feedforward_layernorm.weight",
               "blk.#.ffn_norm.weight", "layers.#.ffn_norm.weight"},
    role_names{role::gate, "model.layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight",
               "layers.#.feed_forward.w1.weight"},
    role_names{role::up, "model.layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight",
               "layers.#.feed_forward.w3.weight"},
    role_names{role::down, "model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight",
               "layers.#.feed_forward.w2.weight"},
    role_names{role::mlp_out_norm, "model.layers.#.post_feedforward_layernorm.weight",
               "blk.#.post_ffw_norm.weight", ""},
    role_names{role::router, "model.layers.#.mlp.gate.weight", "blk.#.ffn_gate_inp.weight", ""},
    role_names{role::expert_gate, "model.layers.#.mlp.experts.@.gate_proj.weight",
               "blk.#.ffn_gate_exps.weight", ""},
    role_names{role::expert_up, "model.layers.#.mlp.experts.@.up_proj.weight",
               "blk.#.ffn_up_exps.weight", ""},
    role_names{role::expert_down, "model.layers.#.mlp.experts.@.down_proj.weight",
               "blk.#.ffn_down_exps.weight", ""},
};

// Mixtral's names of the same roles.
constexpr std::array mixtral_names{
    std::pair{role::router, std::string_view("model.layers.#.block_sparse_moe.gate.weight")},
    std::pair{role::expert_gate,
              std::string_view("model.layers.#.block_sparse_moe.experts.@.w1.weight")},
    std::pair{role::expert_up,
              std::string_view("model.layers.#.block_sparse_moe.experts.@.w3.weight")},
    std::pair{role::expert_down,
              std::string_view("model.layers.#.block_sparse_moe.experts.@.w2.weight")},
};

constexpr std::string_view weight_ending = ".weight";

// What Gemma 3 with images puts into the names of its text model, at the beginning or (since
// version 5 of transformers) after "model."; and its other parts.
constexpr std::string_view nested_model = "language_model.";
constexpr std::array outer_names{std::string_view(), std::string_view("model.")};
constexpr std::array parts_of_images{std::string_view("multi_modal_projector"),
                                     std::string_view("vision_tower")};

std::string filled(std::string_view pattern, const place& where) {
    std::string name;
    for (const char c : pattern) {
        if (c == '#') {
            name += fmt::format("{}", where.layer);
        } else if (c == '@') {
            name += fmt::format("{}", where.expert);
        } else {
            name += c;
        }
    }
    return name;
}

// Tensors that follow from the configuration, and those of a training beside its parameters.
bool may_be_superfluous(std::string_view name, bool of_training) {
    if (of_training && (name.starts_with("adam.") || name.starts_with("history."))) return true;
    return follows_from_config(name);
}

// The file of a folder that holds the model: others beside it may hold it once more, or an adapter.
std::string file_of_model(const std::string& path) {
    constexpr std::array names{std::string_view("model.safetensors.index.json"),
                               std::string_view("model.safetensors"), checkpoint_name};
    if (io::is_remote(path)) {
        if (path.ends_with(".safetensors") || path.ends_with(".json") || path.ends_with(".gguf")) {
            return path;
        }
        const std::optional<std::vector<std::string>> listed = io::remote_listing(path);
        if (!listed) return path;
        for (const std::string_view name : names) {
            for (const std::string& file : *listed) {
                if (file.ends_with(fmt::format("/{}", name))) return file;
            }
        }
        return path;
    }
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) return path;
    for (const std::string_view name : names) {
        const std::filesystem::path file = std::filesystem::path(path) / name;
        if (std::filesystem::is_regular_file(file, ignored)) return file.string();
    }
    std::vector<std::string> gguf;
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
        if (entry.path().extension() == ".gguf") gguf.push_back(entry.path().string());
    }
    return gguf.size() == 1 ? gguf.front() : path;
}

// Every linear layer of a layer, in the order of the forward pass, without the router.
std::vector<place> linears_of(const model_shape& s, std::size_t layer) {
    std::vector<place> all;
    for (const role r : {role::query, role::key, role::value, role::output}) {
        all.push_back({r, layer});
    }
    if (s.experts == 0) {
        for (const role r : {role::gate, role::up, role::down}) all.push_back({r, layer});
        return all;
    }
    for (std::size_t e = 0; e < s.experts; ++e) {
        for (const role r : {role::expert_gate, role::expert_up, role::expert_down}) {
            all.push_back({r, layer, e});
        }
    }
    return all;
}

[[noreturn]] void fail(const std::string& file, const std::string& tensor,
                       const std::string& message) {
    throw base::error(base::error_kind::input, message, {file, tensor, {}});
}

}  // namespace

std::string hugging_face_name(const architecture& kind, const place& where) {
    // Where no norm follows attention, the one before the MLP has its name.
    if (where.what == role::mlp_norm && kind.norms == norm_place::before) {
        return hugging_face_name(kind, {role::attention_out_norm, where.layer});
    }
    if (kind.name == "mixtral") {
        for (const auto& [what, name] : mixtral_names) {
            if (what == where.what) return filled(name, where);
        }
    }
    return filled(names_of_roles[static_cast<std::size_t>(where.what)].hugging_face, where);
}

std::string gguf_name(std::string_view matrix) {
    if (matrix.empty() || matrix.find_first_of("#@") != std::string_view::npos) return {};
    for (const std::string_view outer : outer_names) {
        if (!matrix.starts_with(fmt::format("{}{}", outer, nested_model))) continue;
        return gguf_name(
            fmt::format("{}{}", outer, matrix.substr(outer.size() + nested_model.size())));
    }
    place where{};
    std::string pattern;  // its numbers replaced: the first by #, others by @
    std::size_t numbers = 0;
    for (std::size_t begin = 0; begin <= matrix.size();) {
        const std::size_t end = std::min(matrix.find('.', begin), matrix.size());
        const std::string_view word = matrix.substr(begin, end - begin);
        std::size_t number = 0;
        const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
        if (begin > 0) pattern += '.';
        if (!word.empty() && read.ec == std::errc() && read.ptr == word.data() + word.size()) {
            if (numbers == 0) where.layer = number;
            pattern += numbers++ == 0 ? "#" : "@";
        } else {
            pattern += word;
        }
        begin = end + 1;
    }
    const auto mixtral =
        std::ranges::find(mixtral_names, pattern, &std::pair<role, std::string_view>::second);
    for (const role_names& row : names_of_roles) {
        const bool same = row.hugging_face == pattern || row.gguf == pattern ||
                          row.llama2c == pattern ||
                          (mixtral != mixtral_names.end() && mixtral->first == row.what);
        if (same && !row.gguf.ends_with("norm.weight")) return filled(row.gguf, where);
    }
    return {};
}

bool follows_from_config(std::string_view name) {
    return name.ends_with("rotary_emb.inv_freq") || name.ends_with("freqs_cos") ||
           name.ends_with("freqs_sin");
}

std::string gguf_name(const place& where) {
    return filled(names_of_roles[static_cast<std::size_t>(where.what)].gguf, where);
}

void each_place(const model_shape& s, const std::function<void(const place&)>& visit) {
    visit({role::embedding});
    visit({role::last_norm});
    if (!s.tied) visit({role::head});
    const norm_place norms = s.kind->norms;
    for (std::size_t i = 0; i < s.depth; ++i) {
        const auto add = [&](std::initializer_list<role> roles) {
            for (const role r : roles) visit({r, i});
        };
        if (norms != norm_place::after) add({role::attention_norm, role::mlp_norm});
        if (norms != norm_place::before) add({role::attention_out_norm, role::mlp_out_norm});
        if (s.query_bias) add({role::query_bias, role::key_bias, role::value_bias});
        if (s.output_bias) add({role::output_bias});
        if (s.kind->norm_of_qk != qk_norm::none) add({role::query_norm, role::key_norm});
        if (s.experts != 0) add({role::router});
        for (const place& p : linears_of(s, i)) visit(p);
    }
}

tensor::shape extents_of(const model_shape& s, const place& where) {
    switch (where.what) {
        case role::embedding:
        case role::head:
            return {s.vocabulary, s.width};
        case role::rope_factors:
            return {s.head_size / 2};
        case role::query:
            return {s.query_width(), s.width};
        case role::key:
        case role::value:
            return {s.key_width(), s.width};
        case role::query_bias:
            return {s.query_width()};
        case role::key_bias:
        case role::value_bias:
            return {s.key_width()};
        case role::query_norm:
            return {s.kind->norm_of_qk == qk_norm::head ? s.head_size : s.query_width()};
        case role::key_norm:
            return {s.kind->norm_of_qk == qk_norm::head ? s.head_size : s.key_width()};
        case role::output:
            return {s.width, s.query_width()};
        case role::gate:
        case role::up:
        case role::expert_gate:
        case role::expert_up:
            return {s.hidden, s.width};
        case role::down:
        case role::expert_down:
            return {s.width, s.hidden};
        case role::router:
            return {s.experts, s.width};
        case role::last_norm:
        case role::attention_norm:
        case role::output_bias:
        case role::attention_out_norm:
        case role::mlp_norm:
        case role::mlp_out_norm:
            return {s.width};
    }
    return {};
}

std::string model_weights::spelled(const place& where) const {
    if (shape_.names == naming::hugging_face) {
        std::string own = hugging_face_name(*shape_.kind, where);
        if (outer_ && own.starts_with(*outer_)) own.insert(outer_->size(), nested_model);
        return own;
    }
    const role_names& row = names_of_roles[static_cast<std::size_t>(where.what)];
    return filled(shape_.names == naming::gguf ? row.gguf : row.llama2c, where);
}

std::optional<model_weights::found> model_weights::find(const place& where) const {
    const auto at = by_name_.find(spelled(where));
    if (at == by_name_.end()) return std::nullopt;
    if (shape_.names == naming::gguf && where.what >= role::expert_gate) {
        return found{at->second, where.expert};
    }
    return found{at->second, {}};
}

std::string model_weights::name(const place& where) const {
    const std::string own = spelled(where);
    const auto at = find(where);
    return at && at->part ? fmt::format("{}[{}]", own, *at->part) : own;
}

std::string model_weights::layer_name(const place& where) const {
    std::string text = spelled(where);
    if (text.ends_with(weight_ending)) text.resize(text.size() - weight_ending.size());
    if (shape_.names == naming::gguf && where.what >= role::expert_gate) {
        text += fmt::format(".{}", where.expert);
    }
    return text;
}

std::string model_weights::block_name(std::size_t layer) const {
    const std::string number = fmt::format(".{}", layer);
    const std::string text = spelled({role::query, layer});
    return text.substr(0, text.find(number + ".") + number.size());
}

std::vector<place> model_weights::linears(std::size_t layer) const {
    return linears_of(shape_, layer);
}

model_weights::model_weights(const std::string& path, std::size_t heads)
    : path_(file_of_model(path)),
      model_(std::make_unique<engine::model>(std::vector<std::string>{path_}, io::open_options{})) {
    const std::vector<io::tensor_info>& all = model_->reader().tensors();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!by_name_.emplace(all[i].name, i).second) {
            fail(all[i].file, all[i].name, "is there twice; name one file of the model");
        }
    }
    const auto has_tensor = [&](std::string_view name) { return by_name_.contains(name); };
    const std::map<std::string, std::string>& metadata = model_->readers().front()->metadata();
    io::config_entries config;
    if (has_tensor("token_embd.weight")) {
        shape_ = shape_of_config(metadata, naming::gguf, path_);
        shape_.vocabulary = all[by_name_.find("token_embd.weight")->second].shape.front();
        shape_.tied = !has_tensor("output.weight");
        // The metadata says nothing about biases.
        if (has_tensor("blk.0.attn_q.bias")) shape_.query_bias = true;
        shape_.output_bias = has_tensor("blk.0.attn_output.bias");
    } else if (has_tensor("tok_embeddings.weight")) {
        const auto extent = [&](std::string_view name, std::size_t axis) -> std::size_t {
            const auto at = by_name_.find(name);
            if (at == by_name_.end()) fail(path_, std::string(name), "is missing");
            const tensor::shape& shape = all[at->second].shape;
            if (axis >= shape.size()) fail(path_, std::string(name), "is not a matrix");
            return static_cast<std::size_t>(shape[axis]);
        };
        shape_ = shape_of_llama2c(extent("tok_embeddings.weight", 1),
                                  extent("layers.0.attention.wk.weight", 0), heads, path_);
        shape_.vocabulary = extent("tok_embeddings.weight", 0);
        shape_.hidden = extent("layers.0.feed_forward.w1.weight", 0);
        while (has_tensor(fmt::format("layers.{}.attention.wq.weight", shape_.depth))) {
            ++shape_.depth;
        }
        shape_.tied = !has_tensor("output.weight");
    } else {
        const auto kind = metadata.find("kind");
        of_training_ = kind != metadata.end() && kind->second == checkpoint_kind;
        if (of_training_) {
            for (const auto& [key, text] : metadata) {
                if (key.starts_with(config_prefix)) config[key.substr(config_prefix.size())] = text;
            }
            if (config.empty()) {
                fail(path_, {}, "is of a training of bytes; mx eval reads those of --init MODEL");
            }
        } else {
            config = io::read_model_config(path_);
        }
        if (config.empty()) {
            throw base::error(base::error_kind::input,
                              fmt::format("no config.json ({}) says what this model computes; "
                                          "GGUF files say so themselves",
                                          io::model_config_path(path_)),
                              {path_, {}, {}});
        }
        const std::string config_file = of_training_ ? path_ : io::model_config_path(path_);
        config = text_config_of(std::move(config), config_file);
        shape_ = shape_of_config(config, naming::hugging_face, config_file);
        if (shape_.kind->name == "gemma3_text") {
            for (const std::string_view outer : outer_names) {
                const std::string first = fmt::format("{}{}", outer, nested_model);
                const auto at = by_name_.lower_bound(first);
                if (at != by_name_.end() && at->first.starts_with(first)) outer_ = outer;
            }
        }
        if (shape_.tied && has_tensor(spelled({role::head}))) shape_.tied = false;
    }
    const io::config_entries& entries = shape_.names == naming::hugging_face ? config : metadata;
    for (const char* key : {"bos_token_id", "tokenizer.ggml.bos_token_id"}) {
        const auto at = entries.find(key);
        std::uint32_t id = 0;
        if (at == entries.end()) continue;
        const char* const end = at->second.data() + at->second.size();
        if (std::from_chars(at->second.data(), end, id).ptr == end && id < shape_.vocabulary) {
            first_token_ = id;
        }
    }
    if (shape_.names == naming::llama2c) first_token_ = 1;
    if (heads != 0 && shape_.names != naming::llama2c) {
        base::refuse("--heads: the model's configuration says that it has {}", shape_.heads);
    }
    check();
}

void model_weights::check() {
    const model_shape& s = shape_;
    std::set<std::string, std::less<>> known;
    const auto expect = [&](const place& where) {
        const std::string own = spelled(where);
        known.insert(own);
        const auto at = by_name_.find(own);
        if (at == by_name_.end()) {
            fail(path_, own, "is missing: the configuration says that the model has it");
        }
        const io::tensor_info& info = model_->reader().tensors()[at->second];
        tensor::shape expected = extents(where);
        if (s.names == naming::gguf && where.what >= role::expert_gate) {
            expected.insert(expected.begin(), s.experts);
        }
        if (info.shape != expected) {
            fail(info.file, own,
                 fmt::format("has the shape {}, the configuration says {}",
                             tensor::to_string(info.shape), tensor::to_string(expected)));
        }
        if (!info.note.empty()) fail(info.file, own, info.note);
    };
    each_place(s, expect);
    if (by_name_.contains("rope_freqs.weight") && s.names == naming::gguf) {
        expect({role::rope_factors});
    }
    const auto of_images = [&](const std::string& name) {
        return outer_ && std::ranges::any_of(parts_of_images, [&](std::string_view part) {
                   const std::string begin = fmt::format("{}{}", *outer_, part);
                   if (!name.starts_with(begin + ".")) return false;
                   if (left_out_.empty() || left_out_.back() != begin) left_out_.push_back(begin);
                   return true;
               });
    };
    used_.assign(by_name_.size(), false);
    for (const auto& [name, at] : by_name_) {
        used_[at] = known.contains(name);
        if (used_[at] || of_images(name) || may_be_superfluous(name, of_training_)) continue;
        fail(model_->reader().tensors()[at].file, name,
             fmt::format("is not a tensor of architecture {}: mx does not know what it does",
                         s.kind->name));
    }
}

std::vector<float> model_weights::read_range(const place& where, std::uint64_t first,
                                             std::uint64_t count) const {
    const std::optional<found> at = find(where);
    const io::tensor_info& info = model_->reader().tensors()[at->tensor];
    if (at->part) first += *at->part * (info.elements / shape_.experts);
    std::vector<float> values(static_cast<std::size_t>(count));
    std::vector<std::byte> scratch;
    if (tensor::row_of(info.type).to_f32 == tensor::widening::none) {
        fail(info.file, info.name, "holds no numbers");
    }
    io::read_f32(*model_->reader().open(at->tensor), info.type, first, values, scratch);
    for (const float x : values) {
        if (!std::isfinite(x)) {
            fail(info.file, info.name, "has NaN or Inf: every token's probability would be NaN");
        }
    }
    return values;
}

std::vector<float> model_weights::read(const place& where) const {
    std::uint64_t count = 1;
    for (const std::uint64_t n : extents(where)) count *= n;
    return read_range(where, 0, count);
}

std::vector<float> model_weights::read_rows(const place& where, std::size_t begin,
                                            std::size_t end) const {
    const std::uint64_t row = extents(where).back();
    return read_range(where, begin * row, (end - begin) * row);
}

std::uint64_t model_weights::stored_bytes(const place& where) const {
    const std::optional<found> at = find(where);
    const std::uint64_t all = info(where).file_bytes();
    return at->part ? all / shape_.experts : all;
}

std::vector<io::tensor_info> model_weights::tensors() const {
    std::vector<io::tensor_info> all;
    for (std::size_t i = 0; i < used_.size(); ++i) {
        if (used_[i]) all.push_back(model_->reader().tensors()[i]);
    }
    return all;
}

const io::tensor_info& model_weights::info(const place& where) const {
    return model_->reader().tensors()[find(where)->tensor];
}

}  // namespace mx::llm
