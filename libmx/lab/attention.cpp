// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/attention.hpp"

#include <algorithm>
#include <cmath>

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
    for (std::size_t p = 0; p < shape.context; ++p) {
        for (std::size_t i = 0; i < half; ++i) {
            const double share = static_cast<double>(i) / static_cast<double>(half);
            const double frequency =
                llm::scaled_frequency(shape.scaling, simd::exponential(-share * log_base));
            const double angle = static_cast<double>(p) * frequency;
            const double turns = angle * 0x1.45f306dc9c883p-3;  // 1 / (2 pi)
            const auto within = [](double x) { return x - std::floor(x); };
            cosine_.push_back(static_cast<float>(simd::cosine_of_turns(within(turns))));
            sine_.push_back(static_cast<float>(simd::cosine_of_turns(within(turns - 0.25))));
        }
    }
}

std::size_t attention::bytes_of_thread() const {
    return (narrow_matrices * shape_.context * shape_.size +
            square_matrices * shape_.context * shape_.context) *
           sizeof(float);
}

attention::head_buffers attention::buffers_of(worker& by) const {
    float* at = by.buffer.room_for(bytes_of_thread() / sizeof(float));
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
void attention::gather(const float* x, std::size_t width, std::size_t head, bool turned,
                       float* to) const {
    const std::size_t size = shape_.size, half = size / 2;
    for (std::size_t p = 0; p < shape_.context; ++p) {
        const float* const from = x + p * width + head * size;
        float* const row = to + p * size;
        if (!turned) {
            std::copy_n(from, size, row);
            continue;
        }
        const float* const c = cosine_.data() + p * half;
        const float* const s = sine_.data() + p * half;
        for (std::size_t i = 0; i < half; ++i) {
            // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): `to` has a row for each p
            row[i] = from[i] * c[i] - from[half + i] * s[i];
            row[half + i] = from[half + i] * c[i] + from[i] * s[i];
        }
    }
}

// Inverse of gather(): `turned` rotates by the negative angle.
void attention::scatter(const float* x, std::size_t width, std::size_t head, bool turned,
                        float* to) const {
    const std::size_t size = shape_.size, half = size / 2;
    for (std::size_t p = 0; p < shape_.context; ++p) {
        const float* const row = x + p * size;
        float* const there = to + p * width + head * size;
        if (!turned) {
            std::copy_n(row, size, there);
            continue;
        }
        const float* const c = cosine_.data() + p * half;
        const float* const s = sine_.data() + p * half;
        for (std::size_t i = 0; i < half; ++i) {
            there[i] = row[i] * c[i] + row[half + i] * s[i];
            there[half + i] = row[half + i] * c[i] - row[i] * s[i];
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
    prepare(on);
    const std::size_t n = shape_.context, size = shape_.size,
                      group = shape_.heads / shape_.key_heads;
    const std::size_t width = shape_.width(), key_width = shape_.key_width();
    on.split(tokens / n * shape_.key_heads, 1, [&](std::size_t begin, std::size_t end, int thread) {
        worker& by = worker_of(thread);
        const head_buffers r = buffers_of(by);
        for (std::size_t unit = begin; unit < end; ++unit) {
            const std::size_t first = unit / shape_.key_heads * n;
            const std::size_t key_head = unit % shape_.key_heads;
            gather(k + first * key_width, key_width, key_head, true, r.k);
            gather(v + first * key_width, key_width, key_head, false, r.v);
            for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
                gather(q + first * width, width, head, true, r.q);
                weigh(by, r);
                multiply(by.on, {r.p, n, n}, {r.v, size, n, true}, r.o);
                scatter(r.o, width, head, false, o + first * width);
            }
        }
    });
}

void attention::backward(execution_context& on, std::size_t tokens, const float* q, const float* k,
                         const float* v, const float* d_o, float* dq, float* dk, float* dv) {
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
            gather(k + first * key_width, key_width, key_head, true, r.k);
            gather(v + first * key_width, key_width, key_head, false, r.v);
            std::fill_n(r.sum_k, n * size, 0.0f);
            std::fill_n(r.sum_v, n * size, 0.0f);
            for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
                gather(q + first * width, width, head, true, r.q);
                gather(d_o + first * width, width, head, false, r.o);
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
                scatter(r.dq, width, head, true, dq + first * width);
                kernels.add(r.sum_k, r.dk, n * size, r.sum_k);
                kernels.add(r.sum_v, r.dv, n * size, r.sum_v);
            }
            scatter(r.sum_k, key_width, key_head, true, dk + first * key_width);
            scatter(r.sum_v, key_width, key_head, false, dv + first * key_width);
        }
    });
}

}  // namespace mx::lab
