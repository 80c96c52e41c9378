// SPDX-License-Identifier: Apache-2.0
// Causal attention with rotary positions, in float32 whatever the recipes: no linear layer is part
// of it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/lab/machine.hpp"

namespace mx::lab {

/// `heads` heads of `size` features each; keys and values have `key_heads`, each of them serves
/// heads / key_heads heads that follow each other. Sequences of `context` tokens.
struct attention_shape {
    std::size_t heads = 2, key_heads = 2, size = 32, context = 64;

    std::size_t width() const { return heads * size; }
    std::size_t key_width() const { return key_heads * size; }
};

/// o = softmax(mask(rope(q) rope(k)^T / sqrt(size))) v per head, where a token sees itself and
/// those before it in its sequence. rope turns features (i, i + size / 2) of the token at position
/// p by the angle p 10000^(-2 i / size) (Su et al., arXiv 2104.09864, halves as in Llama's
/// published weights). Products are chains of float32 fused multiply-adds in ascending order of
/// what is summed over, of every token of the sequence: those that are masked add +0. Softmax as in
/// simd::kernels. The backward pass computes the weights again.
class attention {
  public:
    /// `size` is even, `key_heads` divides `heads`.
    explicit attention(const attention_shape& shape);

    const attention_shape& shape() const { return shape_; }

    /// o and q are tokens x width, k and v tokens x key width; tokens is a multiple of the context.
    void forward(machine& on, std::size_t tokens, const float* q, const float* k, const float* v,
                 float* o);
    /// The gradients of q, k and v from that of o.
    void backward(machine& on, std::size_t tokens, const float* q, const float* k, const float* v,
                  const float* d_o, float* dq, float* dk, float* dv);

    /// Bytes of room that a thread needs.
    std::size_t bytes_of_thread() const;

  private:
    // What a thread computes a head in.
    struct worker {
        machine on;
        base::aligned_buffer<float> room;
        explicit worker(std::string_view backend) : on(1, backend) {}
    };
    struct head_room;
    head_room room_of(worker& by) const;
    worker& worker_of(int thread) const { return *workers_[static_cast<std::size_t>(thread)]; }
    void prepare(const machine& on);
    void weigh(worker& by, const head_room& r) const;
    void gather(const float* x, std::size_t width, std::size_t head, bool turned, float* to) const;
    void scatter(const float* x, std::size_t width, std::size_t head, bool turned, float* to) const;

    attention_shape shape_;
    float scale_;
    std::vector<float> cosine_, sine_;  // context x size / 2
    std::vector<std::unique_ptr<worker>> workers_;
};

}  // namespace mx::lab
