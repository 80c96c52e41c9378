// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/attention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/lab/cuda/device_arrays.hpp"
#include "libmx/lab/product.hpp"

namespace mx::lab {

// Matrices of one head: context x size; s, p and d: context x context.
struct attention::head_buffers {
    float *q, *k, *v, *o, *dq, *dk, *dv, *sum_k, *sum_v, *p, *d;
};

namespace {

constexpr std::size_t narrow_matrices = 9, square_matrices = 2;

}  // namespace

attention::attention(const attention_shape& shape)
    : shape_(shape), scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.size)))) {
    const std::size_t half = shape.size / 2;
    const double log_base = simd::logarithm(shape.rope_base);
    std::vector<float> cosine, sine;
    for (std::size_t p = 0; p < shape.context; ++p) {
        for (std::size_t i = 0; i < half; ++i) {
            const double share = static_cast<double>(i) / static_cast<double>(half);
            const double frequency =
                llm::scaled_frequency(shape.scaling, simd::exponential(-share * log_base));
            const double angle = static_cast<double>(p) * frequency;
            const double turns = angle * 0x1.45f306dc9c883p-3;  // 1 / (2 pi)
            const auto within = [](double x) { return x - std::floor(x); };
            cosine.push_back(static_cast<float>(simd::cosine_of_turns(within(turns))));
            sine.push_back(static_cast<float>(simd::cosine_of_turns(within(turns - 0.25))));
        }
    }
    cosine_.assign(std::move(cosine));
    sine_.assign(std::move(sine));
}

std::size_t attention::bytes_of_thread() const {
    return (narrow_matrices * shape_.context * shape_.size +
            square_matrices * shape_.context * shape_.context) *
           sizeof(float);
}

attention::head_buffers attention::buffers_of(worker& by) const {
    float* at = by.buffer.reserve(bytes_of_thread() / sizeof(float));
    head_buffers r{};
    for (float** const m : {&r.q, &r.k, &r.v, &r.o, &r.dq, &r.dk, &r.dv, &r.sum_k, &r.sum_v}) {
        *m = at;
        at += shape_.context * shape_.size;
    }
    r.p = at;
    r.d = at + shape_.context * shape_.context;
    return r;
}

void attention::prepare(const execution_context& on) {
    while (workers_.size() < static_cast<std::size_t>(on.threads())) {
        workers_.push_back(std::make_unique<worker>(on.kernels().name));
    }
}

// Gathers one head's rows of x (context x width); with `turned`, applies the rotary embedding.
void attention::gather(const simd::kernels& by, const float* x, std::size_t width, std::size_t head,
                       bool turned, float* to) const {
    const std::size_t size = shape_.size, half = size / 2;
    for (std::size_t p = 0; p < shape_.context; ++p) {
        const float* const from = x + p * width + head * size;
        if (!turned) {
            std::copy_n(from, size, to + p * size);
        } else {
            by.rope(cosine_.here().data() + p * half, sine_.here().data() + p * half, half, from,
                    to + p * size);
        }
    }
}

// Inverse of gather(): `turned` rotates by the negative angle.
void attention::scatter(const simd::kernels& by, const float* x, std::size_t width,
                        std::size_t head, bool turned, float* to) const {
    const std::size_t size = shape_.size, half = size / 2;
    for (std::size_t p = 0; p < shape_.context; ++p) {
        float* const there = to + p * width + head * size;
        if (!turned) {
            std::copy_n(x + p * size, size, there);
        } else {
            by.rope_back(cosine_.here().data() + p * half, sine_.here().data() + p * half, half,
                         x + p * size, there);
        }
    }
}

// Computes p from q and k.
void attention::weigh(worker& by, const head_buffers& r) const {
    const std::size_t n = shape_.context;
    multiply(by.on, {r.q, n, shape_.size}, {r.k, n, shape_.size}, r.p);
    for (std::size_t i = 0; i < n; ++i) {
        float* const row = r.p + i * n;
        by.on.kernels().softmax(row, i + 1, scale_, row);
        std::fill(row + i + 1, row + n, 0.0f);
    }
}

void attention::forward(execution_context& on, std::size_t tokens, const float* q, const float* k,
                        const float* v, float* o) {
    if (on.device() == nullptr) return forward_here(on, tokens, q, k, v, o);
    const std::size_t width = shape_.width(), key_width = shape_.key_width();
    by_sequences(tokens, [&](std::size_t first, std::size_t sequences) {
        const std::size_t at = first * width, key = first * key_width;
        forward_there(on, sequences, q + at, k + key, v + key, o + at);
    });
}

void attention::forward_here(execution_context& on, std::size_t tokens, const float* q,
                             const float* k, const float* v, float* o) {
    prepare(on);
    const std::size_t n = shape_.context, size = shape_.size,
                      group = shape_.heads / shape_.key_heads;
    const std::size_t width = shape_.width(), key_width = shape_.key_width();
    on.split(tokens / n * shape_.key_heads, 1, [&](std::size_t begin, std::size_t end, int thread) {
        worker& by = worker_of(thread);
        const simd::kernels& kernels = by.on.kernels();
        const head_buffers r = buffers_of(by);
        for (std::size_t unit = begin; unit < end; ++unit) {
            const std::size_t first = unit / shape_.key_heads * n;
            const std::size_t key_head = unit % shape_.key_heads;
            gather(kernels, k + first * key_width, key_width, key_head, true, r.k);
            gather(kernels, v + first * key_width, key_width, key_head, false, r.v);
            for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
                gather(kernels, q + first * width, width, head, true, r.q);
                weigh(by, r);
                multiply(by.on, {r.p, n, n}, {r.v, size, n, true}, r.o);
                scatter(kernels, r.o, width, head, false, o + first * width);
            }
        }
    });
}

void attention::backward(execution_context& on, std::size_t tokens, const float* q, const float* k,
                         const float* v, const float* d_o, float* dq, float* dk, float* dv) {
    if (on.device() == nullptr) return backward_here(on, tokens, q, k, v, d_o, dq, dk, dv);
    const std::size_t width = shape_.width(), key_width = shape_.key_width();
    by_sequences(tokens, [&](std::size_t first, std::size_t sequences) {
        const std::size_t at = first * width, key = first * key_width;
        backward_there(on, sequences, q + at, k + key, v + key, d_o + at, dq + at, dk + key,
                       dv + key);
    });
}

void attention::backward_here(execution_context& on, std::size_t tokens, const float* q,
                              const float* k, const float* v, const float* d_o, float* dq,
                              float* dk, float* dv) {
    prepare(on);
    const std::size_t n = shape_.context, size = shape_.size,
                      group = shape_.heads / shape_.key_heads;
    const std::size_t width = shape_.width(), key_width = shape_.key_width();
    on.split(tokens / n * shape_.key_heads, 1, [&](std::size_t begin, std::size_t end, int thread) {
        worker& by = worker_of(thread);
        const simd::kernels& kernels = by.on.kernels();
        const head_buffers r = buffers_of(by);
        for (std::size_t unit = begin; unit < end; ++unit) {
            const std::size_t first = unit / shape_.key_heads * n;
            const std::size_t key_head = unit % shape_.key_heads;
            gather(kernels, k + first * key_width, key_width, key_head, true, r.k);
            gather(kernels, v + first * key_width, key_width, key_head, false, r.v);
            std::fill_n(r.sum_k, n * size, 0.0f);
            std::fill_n(r.sum_v, n * size, 0.0f);
            for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
                gather(kernels, q + first * width, width, head, true, r.q);
                gather(kernels, d_o + first * width, width, head, false, r.o);
                weigh(by, r);
                multiply(by.on, {r.p, n, n, true}, {r.o, size, n, true}, r.dv);
                multiply(by.on, {r.o, n, size}, {r.v, n, size}, r.d);
                for (std::size_t i = 0; i < n; ++i) {
                    float* const row = r.d + i * n;
                    kernels.softmax_back(r.p + i * n, row, i + 1, scale_, row);
                    std::fill(row + i + 1, row + n, 0.0f);
                }
                multiply(by.on, {r.d, n, n}, {r.k, size, n, true}, r.dq);
                multiply(by.on, {r.d, n, n, true}, {r.q, size, n, true}, r.dk);
                scatter(kernels, r.dq, width, head, true, dq + first * width);
                kernels.add(r.sum_k, r.dk, n * size, r.sum_k);
                kernels.add(r.sum_v, r.dv, n * size, r.sum_v);
            }
            scatter(kernels, r.sum_k, key_width, key_head, true, dk + first * key_width);
            scatter(kernels, r.sum_v, key_width, key_head, false, dv + first * key_width);
        }
    });
}

// On a device all heads of some sequences are computed at once: a row of a head for every position,
// and a matrix of weights for every head.

namespace {

constexpr std::size_t most_weights = std::size_t{64} << 20;  // of all heads, twice
constexpr std::size_t most_heads = 65535;                    // of a launch

}  // namespace

// Calls work(first token, sequences) for parts whose weights fit.
template <typename Work>
void attention::by_sequences(std::size_t tokens, Work&& work) const {
    const std::size_t n = shape_.context, all = tokens / n;
    const std::size_t at_once = std::max<std::size_t>(
        1, std::min(most_weights / (shape_.heads * n * n), most_heads / shape_.heads));
    for (std::size_t first = 0; first < all; first += at_once) {
        work(first * n, std::min(at_once, all - first));
    }
}

struct attention::heads_there {
    const attention_shape& of;
    execution_context& on;
    std::size_t heads, key_heads;  // of all sequences
    const float *cosine, *sine;
    float *q, *k, *v, *p;

    void gather(std::size_t each, const float* tokens, float* rows, bool turned) const {
        move(each, tokens, rows, turned, false);
    }
    void scatter(std::size_t each, const float* rows, float* tokens, bool turned) const {
        move(each, rows, tokens, turned, true);
    }
    void move(std::size_t each, const float* from, float* to, bool turned, bool back) const {
        const std::size_t all = each == of.heads ? heads : key_heads;
        on.run(
            jobs::move_heads{
                {of.size}, of.context, each, back, turned ? cosine : nullptr, sine, from, to},
            all * of.context);
    }
    // A product for each head; `shared`: heads of a group have the same b.
    void multiply(const operand_view& a, const operand_view& b, float* c,
                  bool shared = false) const {
        on.device()->multiply({{a.data, a.rows, a.transposed},
                               {b.data, b.rows, b.transposed},
                               a.depth,
                               c,
                               heads,
                               a.rows * a.depth,
                               b.rows * b.depth,
                               a.rows * b.rows,
                               shared ? of.heads / of.key_heads : 1});
    }
};

// Gathers q, k and v and computes p.
attention::heads_there attention::gather_there(execution_context& on, std::size_t sequences,
                                               const float* q, const float* k, const float* v) {
    const std::size_t n = shape_.context, size = shape_.size;
    const std::size_t heads = sequences * shape_.heads, key_heads = sequences * shape_.key_heads;
    const heads_there all{shape_,
                          on,
                          heads,
                          key_heads,
                          cosine_.there(on).data(),
                          sine_.there(on).data(),
                          q_.reserve(on, heads * n * size),
                          k_.reserve(on, key_heads * n * size),
                          v_.reserve(on, key_heads * n * size),
                          p_.reserve(on, heads * n * n)};
    all.gather(shape_.heads, q, all.q, true);
    all.gather(shape_.key_heads, k, all.k, true);
    all.gather(shape_.key_heads, v, all.v, false);
    all.multiply({all.q, n, size}, {all.k, n, size}, all.p, true);
    on.run(jobs::softmax{{n}, true, scale_, all.p}, heads * n);
    return all;
}

void attention::forward_there(execution_context& on, std::size_t sequences, const float* q,
                              const float* k, const float* v, float* o) {
    const std::size_t n = shape_.context, size = shape_.size;
    const heads_there all = gather_there(on, sequences, q, k, v);
    float* const out = o_.reserve(on, all.heads * n * size);
    all.multiply({all.p, n, n}, {all.v, size, n, true}, out, true);
    all.scatter(shape_.heads, out, o, false);
}

void attention::backward_there(execution_context& on, std::size_t sequences, const float* q,
                               const float* k, const float* v, const float* d_o, float* dq,
                               float* dk, float* dv) {
    const std::size_t n = shape_.context, size = shape_.size;
    const std::size_t group = shape_.heads / shape_.key_heads;
    const heads_there all = gather_there(on, sequences, q, k, v);
    float* const part = o_.reserve(on, 2 * all.heads * n * size);
    float* const gradient = part + all.heads * n * size;
    float* const sum = sum_.reserve(on, all.key_heads * n * size);
    float* const d = d_.reserve(on, all.heads * n * n);
    const auto add_up = [&](float* to, bool turned) {
        on.run(jobs::sum_groups{{n * size}, group, gradient, sum}, all.key_heads);
        all.scatter(shape_.key_heads, sum, to, turned);
    };
    all.gather(shape_.heads, d_o, part, false);
    all.multiply({all.p, n, n, true}, {part, size, n, true}, gradient);
    add_up(dv, false);
    all.multiply({part, n, size}, {all.v, n, size}, d, true);
    on.run(jobs::softmax_back{{n}, true, scale_, all.p, d}, all.heads * n);
    all.multiply({d, n, n}, {all.k, size, n, true}, gradient, true);
    all.scatter(shape_.heads, gradient, dq, true);
    all.multiply({d, n, n, true}, {all.q, size, n, true}, gradient);
    add_up(dk, true);
}

}  // namespace mx::lab
