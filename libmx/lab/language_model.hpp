// SPDX-License-Identifier: Apache-2.0
// Language models: of bytes in two architectures, and as checkpoints describe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "libmx/lab/attention.hpp"
#include "libmx/lab/proxy.hpp"
#include "libmx/lab/repeated_pass.hpp"
#include "libmx/lab/routing.hpp"
#include "libmx/lab/text.hpp"
#include "libmx/llm/model_weights.hpp"

namespace mx::lab {

/// Embedding of ids, `depth` blocks, a final norm and a head:
///   a' = a + Wo attention(norm_q(Wq n), norm_k(Wk n), Wv n), n = norm(a)
///   a" = a' + Wdown phi(Wup m [, Wgate m]),                  m = norm(a')
/// With experts, each has an MLP of its own, and a token's a" is a' + the sum of those that the
/// router chooses (routing.hpp) by its scores Wrouter m.
/// Norms have a gain and no bias. Linear layers have no bias unless the shape says so.
struct language_shape {
    std::size_t width = 64, depth = 2;
    std::size_t heads = 2;
    std::size_t key_heads = 2;  ///< divide heads
    std::size_t context = 64;
    activation phi = activation::gelu;
    norm_kind norm = norm_kind::layer;                  ///< layer or rms
    llm::qk_norm norm_of_qk = llm::qk_norm::all_heads;  ///< of q and k, before positions
    bool head_kept = false;  ///< recipes leave the head alone unless a pattern names it
    std::size_t vocabulary = 256;
    std::size_t head_size = 0;    ///< an even number; 0: width / heads
    std::size_t hidden_size = 0;  ///< of the MLP; 0: 4 width, for swiglu 8 width / 3, rounded up to
                                  ///< a multiple of 32
    float eps = norm_eps;
    double rope_base = 10000;
    llm::rope_scaling scaling = {};
    bool tied = false;  ///< the head is the embedding: one parameter, whose gradient is that of the
                        ///< head, to which the rows of the embedding's are added in their order
    bool query_bias = false, output_bias = false;  ///< of q, k and v; of the output projection
    routing_rule routing = {};  ///< of each block; recipes leave routers alone unless a pattern
                                ///< names them
    const llm::architecture* spelling = llm::architectures.data();  ///< of parameter names

    std::size_t hidden() const;
    attention_shape heads_shape() const {
        const std::size_t size = head_size == 0 ? width / heads : head_size;
        return {heads, key_heads, size, context, rope_base, scaling};
    }
};

/// What that model has and the network does not: other places of norms, windows, GELU in
/// gates, extents beyond its own. Empty if there is nothing.
std::string not_trained(const llm::model_shape& s);
/// The shape of that model for a training. Throws base::error (input), naming `file` and
/// not_trained(), if that is not empty.
language_shape language_shape_of(const llm::model_shape& s, std::size_t context,
                                 const std::string& file);

/// The row of a head's features in a file whose neighbouring features turn together, of row `row`
/// in the network, where halves do. `size`: of a head; rows are of all heads.
std::size_t row_among_neighbours(std::size_t row, std::size_t size);

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
    /// The share of tokens that a matrix multiplies: less than 1 for those of experts.
    double share_of_tokens(const parameter& p) const;

    /// The parameters of `model`, whose shape must be that of the network. Where neighbouring
    /// features turn together, rows of q and k are put in the order of halves.
    std::vector<float> values_of(const llm::model_weights& model) const;

    /// The mean over tokens of the negative log-likelihood of each `target`, in nats. Input and
    /// targets are `tokens` ids each of the host, a multiple of the context, below the vocabulary;
    /// the other arrays are where `on` computes.
    float forward(execution_context& on, const precision& how, std::span<const float> values,
                  const std::uint32_t* ids, const std::uint32_t* target, std::size_t tokens,
                  std::uint64_t seed, std::uint64_t step, const layer_observer* observer = nullptr);
    void backward(execution_context& on, const precision& how, std::span<const float> values,
                  std::span<float> gradients, const layer_observer* observer = nullptr);
    /// The logits of the last forward pass, where it was computed, tokens x vocabulary; after
    /// backward(), their gradients.
    const float* logits() const { return logits_.data(); }

  private:
    struct block_state {
        norm_kept in_kept, q_kept, k_kept, mlp_kept;
        array n, q, k, v, o, m, u, g, h;
        array scores, x, y;  // with experts: of the router; rows of theirs in and out
        routing choices;
    };
    const parameter& at(std::size_t block, llm::role r, std::size_t expert = 0) const {
        return list_.all()[at_.at({r, block, expert})];
    }
    const parameter& head() const { return shape_.tied ? list_.all().front() : list_.all().back(); }
    const parameter& last_norm() const { return at(0, llm::role::last_norm); }
    bool gated() const { return shape_.phi == activation::swiglu; }
    bool mixture() const { return shape_.routing.count != 0; }
    // Rows that a block's MLPs compute.
    std::size_t rows_of_mlp() const { return tokens_ * (mixture() ? shape_.routing.used : 1); }
    linear_layer linear(const parameter& w, std::span<const float> values,
                        const parameter* bias = nullptr) const;
    linear_layer linear(const parameter& w, std::span<const float> values, std::size_t rows) const;
    void forward(const layer_context& c, std::span<const float> values);
    void backward(const layer_context& c, std::span<const float> values,
                  std::span<float> gradients);
    void mlp_forward(const layer_context& c, std::size_t block, std::span<const float> values,
                     float* y);
    void mlp_backward(const layer_context& c, std::size_t block, std::span<const float> values,
                      std::span<float> gradients, const float* dy, float* dx);
    norm_layer norm(const parameter& gain, std::span<const float> values) const;
    layer_context context(execution_context& on, const precision& how,
                          const layer_observer* observer) {
        return {on, how, buffers_, seed_, step_, observer};
    }

    language_shape shape_;
    parameter_list list_;
    std::vector<llm::place> places_;  // of the parameters
    // Role, block and expert to parameter.
    std::map<std::tuple<llm::role, std::size_t, std::size_t>, std::size_t> at_;
    std::vector<std::string> names_;  // layer names: parameter names without ".weight"
    attention attention_;
    std::vector<block_state> blocks_;
    norm_kept last_kept_;
    layer_buffers buffers_;
    array a_, y_, last_, logits_, d_logits_, d_x_, d_y_, d_o_, d_q_, d_k_, d_v_, d_h_, d_u_, d_g_;
    array d_rows_, d_in_, d_part_, d_scores_;  // with experts
    array_of<std::uint32_t> ids_, target_;
    array_of<double> losses_;
    repeated_pass forward_, backward_;
    std::size_t tokens_ = 0;
    std::uint64_t seed_ = 0, step_ = 0;
};

/// Initial values. Embedding, weights and head are normal with standard deviation 0.02; o and down
/// with 0.02 / sqrt(2 depth), as in GPT-2. Gains are uniform in [least, most].
std::vector<float> language_values(const language_network& of, float least_gain, float most_gain,
                                   std::uint64_t seed);

}  // namespace mx::lab
