// SPDX-License-Identifier: Apache-2.0
// Causal attention with rotary position embeddings. Always float32: recipes apply to linear layers
// only.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/lab/array.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/llm/model_shape.hpp"

namespace mx::lab {

/// `heads` query heads of `size` features each. Each of the `key_heads` key and value heads serves
/// heads / key_heads consecutive query heads. Sequences have `context` tokens.
struct attention_shape {
    std::size_t heads = 2, key_heads = 2, size = 32, context = 64;
    double rope_base = 10000;
    llm::rope_scaling scaling = {};

    std::size_t width() const { return heads * size; }
    std::size_t key_width() const { return key_heads * size; }
};

/// o = softmax(mask(rope(q) rope(k)^T / sqrt(size))) v per head. A token attends to itself and to
/// earlier tokens of its sequence. For the token at position p, rope rotates features (i, i + size
/// / 2) by the angle p base^(-2 i / size), scaled (Su et al., arXiv 2104.09864; halves paired as in
/// Llama's weights of transformers). Each product is a chain of float32 fused multiply-adds in
/// ascending order of the summation index over all tokens of the sequence; masked tokens add +0.
/// Softmax as in simd::kernels. The backward pass recomputes the attention weights. Arrays are
/// where the context computes.
class attention {
  public:
    /// `size` must be even, and `key_heads` must divide `heads`.
    explicit attention(const attention_shape& shape);

    const attention_shape& shape() const { return shape_; }

    /// o and q are tokens x width; k and v are tokens x key width. tokens is a multiple of the
    /// context.
    void forward(execution_context& on, std::size_t tokens, const float* q, const float* k,
                 const float* v, float* o);
    /// Computes the gradients of q, k and v from the gradient of o.
    void backward(execution_context& on, std::size_t tokens, const float* q, const float* k,
                  const float* v, const float* d_o, float* dq, float* dk, float* dv);

    /// Bytes of scratch memory per thread.
    std::size_t bytes_of_thread() const;

  private:
    // Scratch memory of one thread for one head.
    struct worker {
        execution_context on;
        base::aligned_buffer<float> buffer;
        explicit worker(std::string_view backend) : on(1, backend) {}
    };
    struct head_buffers;
    void forward_here(execution_context& on, std::size_t tokens, const float* q, const float* k,
                      const float* v, float* o);
    void backward_here(execution_context& on, std::size_t tokens, const float* q, const float* k,
                       const float* v, const float* d_o, float* dq, float* dk, float* dv);
    struct heads_there;
    heads_there gather_there(execution_context& on, std::size_t sequences, const float* q,
                             const float* k, const float* v);
    void forward_there(execution_context& on, std::size_t sequences, const float* q, const float* k,
                       const float* v, float* o);
    void backward_there(execution_context& on, std::size_t sequences, const float* q,
                        const float* k, const float* v, const float* d_o, float* dq, float* dk,
                        float* dv);
    template <typename Work>
    void by_sequences(std::size_t tokens, Work&& work) const;
    head_buffers buffers_of(worker& by) const;
    worker& worker_of(int thread) const { return *workers_[static_cast<std::size_t>(thread)]; }
    void prepare(const execution_context& on);
    void weigh(worker& by, const head_buffers& r) const;
    void gather(const simd::kernels& by, const float* x, std::size_t width, std::size_t head,
                bool turned, float* to) const;
    void scatter(const simd::kernels& by, const float* x, std::size_t width, std::size_t head,
                 bool turned, float* to) const;

    attention_shape shape_;
    float scale_;
    mirrored cosine_, sine_;  // context x size / 2
    std::vector<std::unique_ptr<worker>> workers_;
    // Scratch on a device: rows of heads, and the weights of each head with their gradients.
    array q_, k_, v_, o_, sum_, p_, d_;
};

}  // namespace mx::lab
