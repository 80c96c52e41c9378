// SPDX-License-Identifier: Apache-2.0
// The tensors of a language model, found by role, checked against its shape, and read as float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/llm/model_shape.hpp"

namespace mx::llm {

/// What a tensor does in the model. Those from `attention_norm` on are of a layer, and those from
/// `expert_gate` on of an expert.
enum class role : std::uint8_t {
    embedding,
    head,
    last_norm,
    rope_factors,  ///< frequencies are divided by them (GGUF of Llama 3)
    attention_norm,
    query,
    key,
    value,
    query_bias,
    key_bias,
    value_bias,
    query_norm,
    key_norm,
    output,
    output_bias,
    attention_out_norm,
    mlp_norm,
    gate,
    up,
    down,
    mlp_out_norm,
    router,
    expert_gate,
    expert_up,
    expert_down,
};

/// A place in the model.
struct place {
    role what;
    std::size_t layer = 0, expert = 0;
};

/// The name of a tensor of that architecture in checkpoints of transformers.
std::string hugging_face_name(const architecture& kind, const place& where);

/// The name in GGUF files; of an expert, that of the stack.
std::string gguf_name(const place& where);

/// The same of a matrix with that name in checkpoints of transformers, llama2.c or
/// GGUF. Empty for other names.
std::string gguf_name(std::string_view matrix);

/// Visits all tensors that a model of that shape must have: without rope_factors, and without the
/// head if it is tied.
void each_place(const model_shape& s, const std::function<void(const place&)>& visit);

/// The shape of a tensor: of a linear layer rows (outputs) and columns (inputs).
tensor::shape extents_of(const model_shape& s, const place& where);

/// Whether the configuration says what a tensor of that name holds: the angles of positions.
bool follows_from_config(std::string_view name);

/// The beginning of the metadata of a checkpoint of `mx train` that holds entries of its
/// configuration.
inline constexpr std::string_view config_prefix = "request.config.";
/// The name of such a checkpoint in the folder of a run, and what its metadata `kind` says.
inline constexpr std::string_view checkpoint_name = "checkpoint.safetensors";
inline constexpr std::string_view checkpoint_kind = "mx.checkpoint/1";

/// A model that is open for evaluation.
class model_weights {
  public:
    /// Opens the model at `path`: a file, an index, a folder with config.json, or a checkpoint of
    /// `mx train --init MODEL` (in a folder too), whose other tensors are left out. Quantized
    /// tensors are read as the values that they stand for. `heads` is used for files of llama2.c
    /// without configuration (model_shape.hpp). Throws base::error (input), with one line, for
    /// tensors that are missing, superfluous, or of another shape than the configuration says.
    explicit model_weights(const std::string& path, std::size_t heads = 0);

    const model_shape& shape() const { return shape_; }
    const std::string& path() const { return path_; }
    const engine::model& files() const { return *model_; }

    /// The token that texts begin with, if the configuration says so.
    std::optional<std::uint32_t> first_token() const { return first_token_; }

    /// The tensors of the file that the model computes with: not those of a training beside its
    /// parameters, nor those of left_out().
    std::vector<io::tensor_info> tensors() const;
    /// Parts of the file that are left out, by name: the vision tower of Gemma 3 and what projects
    /// its features. Text alone does not reach them.
    const std::vector<std::string>& left_out() const { return left_out_; }

    bool has(const place& where) const { return find(where).has_value(); }
    /// The tensor's name in the file; of an expert in a stack, that of the stack and its number.
    std::string name(const place& where) const;
    /// The name without its ending ".weight", which patterns of --at match.
    std::string layer_name(const place& where) const;
    /// The name that those of the block's tensors begin with, without its last dot.
    std::string block_name(std::size_t layer) const;
    /// The values in C order, rounded to float32 once if they are wider. Throws base::error (input)
    /// for NaN and Inf, which make every result NaN.
    std::vector<float> read(const place& where) const;
    /// Rows [begin, end) of a matrix.
    std::vector<float> read_rows(const place& where, std::size_t begin, std::size_t end) const;
    /// Bytes that the tensor occupies in its file.
    std::uint64_t stored_bytes(const place& where) const;
    /// The tensor in the file; of an expert in a stack, the stack.
    const io::tensor_info& info(const place& where) const;

    /// The matrix of the head: the embedding if they are tied.
    place head() const { return {shape_.tied ? role::embedding : role::head}; }
    /// Every linear layer of layer `i`, in the order of the forward pass, as roles; without the
    /// router.
    std::vector<place> linears(std::size_t layer) const;
    tensor::shape extents(const place& where) const { return extents_of(shape_, where); }

  private:
    struct found {
        std::size_t tensor;
        std::optional<std::size_t> part;  // of axis 0
    };
    std::string spelled(const place& where) const;
    std::optional<found> find(const place& where) const;
    std::vector<float> read_range(const place& where, std::uint64_t first,
                                  std::uint64_t count) const;
    void check();

    std::string path_;
    std::unique_ptr<engine::model> model_;
    model_shape shape_;
    std::optional<std::uint32_t> first_token_;
    bool of_training_ = false;
    // Gemma 3 with images: names have "language_model." after this.
    std::optional<std::string_view> outer_;
    std::vector<std::string> left_out_;
    std::vector<bool> used_;  // by tensor of the file
    std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace mx::llm
