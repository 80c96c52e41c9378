// SPDX-License-Identifier: Apache-2.0
// Byte-level language models in two architectures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/lab/attention.hpp"
#include "libmx/lab/proxy.hpp"
#include "libmx/lab/text.hpp"

namespace mx::lab {

/// Embedding of bytes, `depth` blocks, a final norm and an untied head:
///   a' = a + Wo attention(norm_q(Wq n), norm_k(Wk n), Wv n), n = norm(a)
///   a" = a' + Wdown phi(Wup m [, Wgate m]),                  m = norm(a')
/// Norms have a gain and no bias; linear layers have no bias.
struct language_shape {
    std::size_t width = 64, depth = 2;
    std::size_t heads = 2;      ///< of width / heads features, an even number
    std::size_t key_heads = 2;  ///< divide heads
    std::size_t context = 64;
    activation phi = activation::gelu;
    norm_kind norm = norm_kind::layer;  ///< layer or rms
    bool qk_norm = true;                ///< of all features of q and of k, before positions
    bool head_kept = false;             ///< recipes leave the head alone unless a pattern names it

    /// 4 width; for swiglu 8 width / 3, rounded up to a multiple of 32.
    std::size_t hidden() const;
    attention_shape heads_shape() const { return {heads, key_heads, width / heads, context}; }
    friend bool operator==(const language_shape&, const language_shape&) = default;
};

inline constexpr std::size_t vocabulary = 256;  // bytes

/// Forward and backward pass of a language model. Keeps the activations of the last forward pass.
/// Parameter names are those of Llama and OLMo 2 checkpoints.
class language_network {
  public:
    explicit language_network(const language_shape& shape);

    const language_shape& shape() const { return shape_; }
    const parameter_list& parameters() const { return list_; }
    std::vector<layer_name> layers() const;
    /// Floats allocated for `tokens` tokens: activations, gradients and the largest operands.
    double floats_kept(std::size_t tokens) const;
    /// Bytes of attention scratch memory per thread.
    std::size_t bytes_of_thread() const { return attention_.bytes_of_thread(); }

    /// The mean over tokens of the negative log-likelihood of each `target`, in nats. Input and
    /// targets are `tokens` bytes each, a multiple of the context, and must stay valid until
    /// backward() returns.
    float forward(machine& on, const precision& how, const std::vector<float>& values,
                  const std::uint8_t* bytes, const std::uint8_t* target, std::size_t tokens,
                  std::uint64_t seed, std::uint64_t step, const layer_observer* observer = nullptr);
    void backward(machine& on, const precision& how, const std::vector<float>& values,
                  std::vector<float>& gradients, const layer_observer* observer = nullptr);
    /// The logits of the last forward pass, tokens x 256; after backward(), their gradients.
    const float* logits() const { return logits_.data(); }

  private:
    // Index of a parameter in its block.
    enum place : std::size_t { in_norm, q, k, v, q_norm, k_norm, o, mlp_norm, up, gate, down };
    static constexpr std::size_t places = 11;

    struct block_state {
        norm_kept in_kept, q_kept, k_kept, mlp_kept;
        base::aligned_buffer<float> n, q, k, v, o, m, u, g, h;
    };
    // Parameter p of block i; i == depth selects the parameters after the last block.
    const parameter& at(std::size_t block, place p) const {
        return list_.all()[at_[block * places + p]];
    }
    bool gated() const { return shape_.phi == activation::swiglu; }
    linear_layer linear(const parameter& w, const std::vector<float>& values) const;
    norm_layer norm(const parameter& gain, const std::vector<float>& values) const;
    layer_context context(machine& on, const precision& how, const layer_observer* observer) {
        return {on, how, room_, seed_, step_, observer};
    }

    language_shape shape_;
    parameter_list list_;
    std::vector<std::size_t> at_;
    std::vector<std::string> names_;  // layer names: parameter names without ".weight"
    attention attention_;
    std::vector<block_state> blocks_;
    norm_kept last_kept_;
    layer_room room_;
    base::aligned_buffer<float> a_, y_, last_, logits_, d_logits_, d_x_, d_y_, d_q_, d_k_, d_v_,
        d_h_, d_u_, d_g_;
    const std::uint8_t* bytes_ = nullptr;
    std::size_t tokens_ = 0;
    std::uint64_t seed_ = 0, step_ = 0;
};

/// Initial values. Embedding, weights and head are normal with standard deviation 0.02; o and down
/// with 0.02 / sqrt(2 depth), as in GPT-2. Gains are uniform in [least, most].
std::vector<float> language_values(const language_network& of, float least_gain, float most_gain,
                                   std::uint64_t seed);

}  // namespace mx::lab
