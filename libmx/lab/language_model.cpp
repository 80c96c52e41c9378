// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/language_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/random.hpp"

namespace mx::lab {
namespace {

constexpr std::string_view weight_ending = ".weight";

}  // namespace

std::size_t language_shape::hidden() const {
    return phi == activation::swiglu ? (8 * width / 3 + 31) / 32 * 32 : 4 * width;
}

language_network::language_network(const language_shape& shape)
    : shape_(shape),
      at_(shape.depth * places),
      attention_(shape.heads_shape()),
      blocks_(shape.depth) {
    const auto d = shape.width, h = shape.hidden(), kv = attention_.shape().key_width();
    list_.add("model.embed_tokens.weight", parameter_kind::weight, {vocabulary, d});
    for (std::size_t i = 0; i < shape.depth; ++i) {
        const auto has = [&](place p, const char* name, const tensor::shape& extents) {
            at_[i * places + p] = list_.all().size();
            list_.add(fmt::format("model.layers.{}.{}{}", i, name, weight_ending),
                      extents.size() == 1 ? parameter_kind::norm_gain : parameter_kind::weight,
                      extents);
        };
        has(in_norm, "input_layernorm", {d});
        has(q, "self_attn.q_proj", {d, d});
        has(k, "self_attn.k_proj", {kv, d});
        has(v, "self_attn.v_proj", {kv, d});
        if (shape.qk_norm) {
            has(q_norm, "self_attn.q_norm", {d});
            has(k_norm, "self_attn.k_norm", {kv});
        }
        has(o, "self_attn.o_proj", {d, d});
        has(mlp_norm, "post_attention_layernorm", {d});
        has(up, "mlp.up_proj", {h, d});
        if (gated()) has(gate, "mlp.gate_proj", {h, d});
        has(down, "mlp.down_proj", {d, h});
    }
    list_.add("model.norm.weight", parameter_kind::norm_gain, {d});
    list_.add("lm_head.weight", parameter_kind::weight, {vocabulary, d});
    for (const parameter& p : list_.all()) {
        names_.push_back(p.name.substr(0, p.name.size() - weight_ending.size()));
    }
}

std::vector<layer_name> language_network::layers() const {
    std::vector<layer_name> all;
    for (std::size_t i = 1; i < names_.size(); ++i) {  // from 1: the embedding has no product
        all.push_back({names_[i], shape_.head_kept && i + 1 == names_.size()});
    }
    return all;
}

double language_network::floats_kept(std::size_t tokens) const {
    const auto d = static_cast<double>(shape_.width);
    const auto kv = static_cast<double>(attention_.shape().key_width());
    const auto h = static_cast<double>(shape_.hidden());
    const auto n = static_cast<double>(tokens);
    const double block = n * (2 * (d + d) + 2 + d + kv + kv + d +
                              (shape_.qk_norm ? 2 * (d + kv) + 2 : 0) + (gated() ? 3 : 2) * h);
    const double shared =
        n * (3 * d + 2 * vocabulary) + n * (4 * d + 2 * kv + (gated() ? 3 : 2) * h);
    // Both operands of a product, the one rounded before the product, and the packed one.
    const double widest = std::max({d, h, static_cast<double>(vocabulary)});
    return static_cast<double>(shape_.depth) * block + shared + 4 * n * widest;
}

linear_layer language_network::linear(const parameter& w, const std::vector<float>& values) const {
    const auto index = static_cast<std::size_t>(&w - list_.all().data());
    return {names_[index],
            tokens_,
            static_cast<std::size_t>(w.shape[1]),
            static_cast<std::size_t>(w.shape[0]),
            of(values, w),
            nullptr};
}

norm_layer language_network::norm(const parameter& gain, const std::vector<float>& values) const {
    const auto index = static_cast<std::size_t>(&gain - list_.all().data());
    return {names_[index],    tokens_, gain.count, norm_eps, shape_.norm == norm_kind::rms,
            of(values, gain), nullptr};
}

float language_network::forward(machine& on, const precision& how, const std::vector<float>& values,
                                const std::uint8_t* bytes, const std::uint8_t* target,
                                std::size_t tokens, std::uint64_t seed, std::uint64_t step,
                                const layer_observer* observer) {
    bytes_ = bytes;
    tokens_ = tokens;
    seed_ = seed;
    step_ = step;
    const layer_context c = context(on, how, observer);
    const std::size_t narrow = tokens * shape_.width, wide = tokens * shape_.hidden();
    const std::size_t keys = tokens * attention_.shape().key_width();
    float* const a = a_.room_for(narrow);
    float* const y = y_.room_for(narrow);
    lookup_forward(on, of(values, list_.all().front()), bytes, tokens, shape_.width, a);
    for (std::size_t i = 0; i < shape_.depth; ++i) {
        block_state& b = blocks_[i];
        const auto project = [&](place p, const float* x, base::aligned_buffer<float>& to,
                                 std::size_t count) {
            linear_forward(c, linear(at(i, p), values), x, to.room_for(count));
        };
        norm_forward(c, norm(at(i, in_norm), values), a, b.n.room_for(narrow), b.in_kept);
        project(q, b.n.data(), b.q, narrow);
        project(k, b.n.data(), b.k, keys);
        project(v, b.n.data(), b.v, keys);
        if (shape_.qk_norm) {
            norm_forward(c, norm(at(i, q_norm), values), b.q.data(), b.q.data(), b.q_kept);
            norm_forward(c, norm(at(i, k_norm), values), b.k.data(), b.k.data(), b.k_kept);
        }
        attention_.forward(on, tokens, b.q.data(), b.k.data(), b.v.data(), b.o.room_for(narrow));
        linear_forward(c, linear(at(i, o), values), b.o.data(), y);
        add(on, a, y, narrow, a);
        norm_forward(c, norm(at(i, mlp_norm), values), a, b.m.room_for(narrow), b.mlp_kept);
        project(up, b.m.data(), b.u, wide);
        if (gated()) project(gate, b.m.data(), b.g, wide);
        activation_forward(c, shape_.phi, tokens, shape_.hidden(), b.u.data(), b.h.room_for(wide),
                           b.g.data());
        linear_forward(c, linear(at(i, down), values), b.h.data(), y);
        add(on, a, y, narrow, a);
    }
    const parameter& head = list_.all().back();
    const parameter& last_norm = list_.all()[list_.all().size() - 2];
    norm_forward(c, norm(last_norm, values), a, last_.room_for(narrow), last_kept_);
    float* const logits = logits_.room_for(tokens * vocabulary);
    linear_forward(c, linear(head, values), last_.data(), logits);
    return cross_entropy_loss(on, logits, target, tokens, vocabulary,
                              d_logits_.room_for(tokens * vocabulary));
}

void language_network::backward(machine& on, const precision& how, const std::vector<float>& values,
                                std::vector<float>& gradients, const layer_observer* observer) {
    gradients.assign(list_.size(), 0.0f);
    const layer_context c = context(on, how, observer);
    const std::size_t narrow = tokens_ * shape_.width, wide = tokens_ * shape_.hidden();
    const std::size_t keys = tokens_ * attention_.shape().key_width();
    float* const da = y_.room_for(narrow);      // gradient of the residual stream
    float* const dx = d_x_.room_for(narrow);    // gradient of a branch's input
    float* const part = d_y_.room_for(narrow);  // one of several gradients that add up to it
    float* const dq = d_q_.room_for(narrow);
    float* const dk = d_k_.room_for(keys);
    float* const dv = d_v_.room_for(keys);
    float* const dh = d_h_.room_for(wide);
    float* const du = d_u_.room_for(wide);
    float* const dg = gated() ? d_g_.room_for(wide) : nullptr;
    const auto undo = [&](const parameter& w, const float* x, const float* dy, float* to) {
        linear_backward(c, linear(w, values), x, dy, to, of(gradients, w), nullptr);
    };
    const auto undo_norm = [&](const parameter& g, const norm_kept& kept, const float* dy,
                               float* to) {
        norm_backward(c, norm(g, values), kept, dy, to, of(gradients, g), nullptr);
    };
    undo(list_.all().back(), last_.data(), d_logits_.data(), dx);
    undo_norm(list_.all()[list_.all().size() - 2], last_kept_, dx, da);
    for (std::size_t i = shape_.depth; i-- > 0;) {
        const block_state& b = blocks_[i];
        undo(at(i, down), b.h.data(), da, dh);
        activation_backward(c, shape_.phi, tokens_, shape_.hidden(), b.u.data(), dh, du, b.g.data(),
                            dg);
        undo(at(i, up), b.m.data(), du, dx);
        if (gated()) {
            undo(at(i, gate), b.m.data(), dg, part);
            add(on, dx, part, narrow, dx);
        }
        undo_norm(at(i, mlp_norm), b.mlp_kept, dx, part);
        add(on, da, part, narrow, da);
        undo(at(i, o), b.o.data(), da, part);
        attention_.backward(on, tokens_, b.q.data(), b.k.data(), b.v.data(), part, dq, dk, dv);
        // The gradient of a norm cannot be computed in place.
        const float *before_q = dq, *before_k = dk;
        if (shape_.qk_norm) {
            undo_norm(at(i, q_norm), b.q_kept, dq, part);
            undo_norm(at(i, k_norm), b.k_kept, dk, dq);
            before_q = part;
            before_k = dq;
        }
        undo(at(i, q), b.n.data(), before_q, dx);
        undo(at(i, k), b.n.data(), before_k, part);
        add(on, dx, part, narrow, dx);
        undo(at(i, v), b.n.data(), dv, part);
        add(on, dx, part, narrow, dx);
        undo_norm(at(i, in_norm), b.in_kept, dx, part);
        add(on, da, part, narrow, da);
    }
    lookup_backward(on, da, bytes_, tokens_, shape_.width, of(gradients, list_.all().front()));
}

std::vector<float> language_values(const language_network& of_network, float least_gain,
                                   float most_gain, std::uint64_t seed) {
    constexpr double deviation = 0.02;
    std::vector<float> values =
        initial_values(of_network.parameters(), start::pytorch, least_gain, most_gain, seed);
    const double deep = deviation / std::sqrt(2.0 * static_cast<double>(of_network.shape().depth));
    for (const parameter& p : of_network.parameters().all()) {
        if (p.kind != parameter_kind::weight) continue;
        float* const x = of(values, p);
        const bool residual = p.name.find("o_proj") != std::string::npos ||
                              p.name.find("down_proj") != std::string::npos;
        simd::scalar_kernels.normal({seed, base::tensor_id("init." + p.name)}, 0, p.count, x);
        const auto scale = static_cast<float>(residual ? deep : deviation);
        for (std::size_t i = 0; i < p.count; ++i) x[i] *= scale;
    }
    return values;
}

}  // namespace mx::lab
