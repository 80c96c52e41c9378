// SPDX-License-Identifier: Apache-2.0
// The forward pass of a language model, block by block.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/eval/arm.hpp"
#include "libmx/eval/simd/kernels.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/operand.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/llm/model_weights.hpp"

namespace mx::eval {

/// Tokens that pass through a block together: `rows` of each of several sequences, at positions
/// from `start` on. The rows of a sequence are consecutive.
struct token_batch {
    std::size_t sequences = 1, rows = 0, start = 0;
    std::uint64_t number = 0;  ///< of the window, for draws of stochastic rounding

    std::size_t tokens() const { return sequences * rows; }
};

/// Keys and values of the tokens that a block has seen: per sequence, `positions` rows.
template <typename T>
struct block_cache {
    std::size_t positions = 0;
    std::vector<T> keys, values;
};

/// Rows [begin, end) of a matrix of the model, read by all threads.
std::vector<float> read_by_threads(const lab::execution_context& on, const model_weights& model,
                                   const place& where, std::size_t begin, std::size_t end);

/// A matrix that passes through a block: "x" of a linear layer, "k_cache", "v_cache", "p" (the
/// probabilities of attention, a row for each query of each head, a column for each position).
/// Valid during the call.
template <typename T>
struct seen_matrix {
    std::string_view layer, name;
    std::size_t rows, cols;
    const T* data;
};

/// One block of a model. T is float or double: the type of stored activations and of products.
/// Each output of a product is one chain of fused multiply-adds in T in ascending order (or as an
/// accumulator model sums it); norms, softmax, rotary embeddings and activation functions are
/// computed in float64 and rounded to T once. docs/design/evaluation.md states every step.
template <typename T>
class transformer {
  public:
    /// `most_positions`: of a window. `on` must outlive it.
    transformer(const model_weights& model, lab::execution_context& on, std::size_t most_positions);
    ~transformer();

    /// Reads the weights of block `layer`, which forward() uses from then on.
    void load(std::size_t layer);
    /// h (tokens x width) becomes the output of the block. With a cache, keys and values are added
    /// to it, and earlier tokens are taken from it.
    void forward(const arm& how, const token_batch& batch, T* h, block_cache<T>* cache = nullptr);

    /// `x` (rows x cols) under a rule along its rows, as operands of products are: rounded to
    /// float32 first. `x` itself if the rule does nothing, else in `buffer`.
    const T* quantized(const lab::operand_rule& rule, const transform::rotation& rotate,
                       const std::string& name, const token_batch& b, const T* x, std::size_t rows,
                       std::size_t cols, lab::array_of<T>& buffer);
    /// The product of a linear layer of the block with inputs `x`, its bias left out; `inputs`:
    /// whether the arm's rule for inputs applies.
    void multiply(const arm& how, const place& where, const token_batch& b, std::size_t rows,
                  const T* x, T* y, bool inputs = true);

    /// The rows of the embedding of `ids`, scaled if the model does so.
    void embed(const std::vector<std::uint32_t>& ids, T* h) const;
    /// The final norm; y may be h.
    void last_norm(const T* h, std::size_t rows, T* y) const;

    /// Called with inputs of linear layers, keys and values, and with probabilities of attention if
    /// they are kept, by the name of the queries' layer. Not for several sequences at a time.
    std::function<void(const seen_matrix<T>&)> observer;
    bool keeps_probabilities = false;
    /// Called after each product of a linear layer.
    std::function<void(const place& where, const token_batch& b, std::size_t rows, const T* x,
                       const T* y)>
        on_product;

  private:
    struct worker;

    void linear(const arm& how, const place& where, const token_batch& b, std::size_t rows,
                const T* x, T* y);
    const lab::packed_operand<T>& weight_of(const lab::precision& p, const place& where,
                                            std::size_t index);
    const T* input_of(const lab::precision& p, const std::string& layer, const token_batch& b,
                      std::size_t rows, std::size_t cols, const T* x);
    void add_bias(const place& where, std::size_t rows, std::size_t cols, T* y);
    void normalize(role what, const T* x, std::size_t rows, std::size_t width, T* y);
    void attend(const arm& how, const token_batch& b, const T* q, block_cache<T>& cache, T* o);
    void mlp(const arm& how, const token_batch& b, const T* m, T* y);
    void experts(const arm& how, const token_batch& b, const T* m, T* y);

    const model_weights& model_;
    const model_shape& shape_;
    lab::execution_context& on_;
    const simd::kernels_of<T>& kernels_;
    std::size_t layer_ = 0;
    std::vector<double> cosine_, sine_, local_cosine_, local_sine_;  // positions x half a head
    std::vector<double> last_gain_;
    std::map<role, std::vector<double>> gains_;
    std::map<role, std::vector<T>> vectors_;
    std::vector<std::vector<float>> weights_;                 // by position in linears()
    std::map<std::string, lab::packed_operand<T>> prepared_;  // by linear layer and rule
    std::vector<float> router_;
    std::vector<std::unique_ptr<worker>> workers_;
    // Scratch, valid until the next call.
    base::aligned_buffer<T> x_, q_, k_, v_, o_, y_, gate_, up_, rounded_x_, probabilities_;
    lab::array_of<T> quantized_x_, quantized_kv_;
    base::aligned_buffer<float> narrow_;
    // The last input that was quantized, how, and the result.
    const T* input_ = nullptr;
    std::string input_key_;
    const T* quantized_input_ = nullptr;
    block_cache<T> own_;
};

extern template class transformer<float>;
extern template class transformer<double>;

}  // namespace mx::eval
