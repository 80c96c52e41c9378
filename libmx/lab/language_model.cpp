// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/language_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"

namespace mx::lab {

using llm::role;

std::size_t language_shape::hidden() const {
    if (hidden_size != 0) return hidden_size;
    return phi == activation::swiglu ? (8 * width / 3 + 31) / 32 * 32 : 4 * width;
}

std::string not_trained(const llm::model_shape& s) {
    constexpr std::size_t most_width = 65536, most_depth = 1024, most_rows = std::size_t{1} << 20;
    if (s.experts != 0) return "experts";
    if (s.kind->norms != llm::norm_place::before) return "norms after attention and MLP";
    if (s.window != 0) return "attention with a window";
    if (s.gate != llm::gate_function::silu) return "GELU in the MLP";
    if (s.width > most_width || s.query_width() > most_width || s.depth > most_depth ||
        s.hidden > most_rows || s.vocabulary > most_rows) {
        return fmt::format("an extent beyond width {}, {} layers or {} rows", most_width,
                           most_depth, most_rows);
    }
    if (!(s.rope_base >= 1 && s.rope_base <= 1e30)) {
        return "a base of rotary embeddings that is not between 1 and 1e30";
    }
    return {};
}

language_shape language_shape_of(const llm::model_shape& s, std::size_t context,
                                 const std::string& file) {
    const std::string what = not_trained(s);
    if (!what.empty()) {
        throw base::error(base::error_kind::input,
                          fmt::format("has {}, and gradients are computed of models that differ "
                                      "from llama in biases or in norms of q and k alone",
                                      what),
                          {file, {}, {}});
    }
    language_shape to;
    to.width = s.width;
    to.depth = s.depth;
    to.heads = s.heads;
    to.key_heads = s.key_heads;
    to.context = context;
    to.phi = activation::swiglu;
    to.norm = norm_kind::rms;
    to.norm_of_qk = s.kind->norm_of_qk;
    to.head_kept = true;
    to.vocabulary = s.vocabulary;
    to.head_size = s.head_size;
    to.hidden_size = s.hidden;
    to.eps = static_cast<float>(s.eps);
    to.rope_base = s.rope_base;
    to.scaling = s.scaling;
    to.tied = s.tied;
    to.query_bias = s.query_bias;
    to.output_bias = s.output_bias;
    return to;
}

std::size_t row_among_neighbours(std::size_t row, std::size_t size) {
    // Features j and size / 2 + j are 2 j and 2 j + 1 there.
    const std::size_t at = row % size, half = size / 2;
    return row - at + (at < half ? 2 * at : 2 * (at - half) + 1);
}

language_network::language_network(const language_shape& shape)
    : shape_(shape), attention_(shape.heads_shape()), blocks_(shape.depth) {
    const auto d = shape.width, h = shape.hidden(), size = attention_.shape().size;
    const auto qw = attention_.shape().width(), kv = attention_.shape().key_width();
    const llm::architecture& spelling = llm::architectures.front();  // names of Llama
    const auto has = [&](role r, std::size_t block, parameter_kind kind,
                         const tensor::shape& extents) {
        at_[{r, block}] = list_.all().size();
        places_.push_back({r, block});
        list_.add(llm::hugging_face_name(spelling, places_.back()), kind, extents);
    };
    has(role::embedding, 0, parameter_kind::weight, {shape.vocabulary, d});
    for (std::size_t i = 0; i < shape.depth; ++i) {
        const auto weight = [&](role r, std::size_t out, std::size_t in) {
            has(r, i, parameter_kind::weight, {out, in});
        };
        const auto gain = [&](role r, std::size_t width) {
            has(r, i, parameter_kind::norm_gain, {width});
        };
        const auto bias = [&](bool any, role r, std::size_t width) {
            if (any) has(r, i, parameter_kind::bias, {width});
        };
        gain(role::attention_norm, d);
        weight(role::query, qw, d);
        weight(role::key, kv, d);
        weight(role::value, kv, d);
        bias(shape.query_bias, role::query_bias, qw);
        bias(shape.query_bias, role::key_bias, kv);
        bias(shape.query_bias, role::value_bias, kv);
        if (shape.norm_of_qk != llm::qk_norm::none) {
            const bool each = shape.norm_of_qk == llm::qk_norm::head;
            gain(role::query_norm, each ? size : qw);
            gain(role::key_norm, each ? size : kv);
        }
        weight(role::output, d, qw);
        bias(shape.output_bias, role::output_bias, d);
        gain(role::mlp_norm, d);
        weight(role::up, h, d);
        if (gated()) weight(role::gate, h, d);
        weight(role::down, d, h);
    }
    has(role::last_norm, 0, parameter_kind::norm_gain, {d});
    if (!shape.tied) has(role::head, 0, parameter_kind::weight, {shape.vocabulary, d});
    for (const parameter& p : list_.all()) names_.push_back(p.name.substr(0, p.name.rfind('.')));
}

std::vector<layer_name> language_network::layers() const {
    std::vector<layer_name> all;
    const auto name = [&](const parameter& p) {
        return names_[static_cast<std::size_t>(&p - list_.all().data())];
    };
    for (const parameter& p : list_.all()) {
        // The embedding has no product of its own.
        const bool layer = p.kind != parameter_kind::bias && &p != &list_.all().front();
        if (layer && &p != &head()) all.push_back({name(p), false});
    }
    all.push_back({name(head()), shape_.head_kept});
    return all;
}

double language_network::floats_kept(std::size_t tokens) const {
    const auto d = static_cast<double>(shape_.width);
    const auto qw = static_cast<double>(attention_.shape().width());
    const auto kv = static_cast<double>(attention_.shape().key_width());
    const auto h = static_cast<double>(shape_.hidden());
    const auto v = static_cast<double>(shape_.vocabulary);
    const auto n = static_cast<double>(tokens);
    const bool normed = shape_.norm_of_qk != llm::qk_norm::none;
    const double block = n * (4 * d + 2 + 2 * qw + 2 * kv + (normed ? 2 * (qw + kv) + 2 : 0) +
                              (gated() ? 3 : 2) * h);
    const double shared = n * (3 * d + 2 * v) + n * (3 * d + qw + 2 * kv + (gated() ? 3 : 2) * h);
    // Both operands of a product, the one rounded before the product, and the packed one.
    const double widest = std::max({d, qw, h, v});
    return static_cast<double>(shape_.depth) * block + shared + 4 * n * widest;
}

linear_layer language_network::linear(const parameter& w, std::span<const float> values,
                                      const parameter* bias) const {
    const auto index = static_cast<std::size_t>(&w - list_.all().data());
    return {names_[index],
            tokens_,
            static_cast<std::size_t>(w.shape[1]),
            static_cast<std::size_t>(w.shape[0]),
            of(values, w),
            bias == nullptr ? nullptr : of(values, *bias)};
}

norm_layer language_network::norm(const parameter& gain, std::span<const float> values) const {
    const auto index = static_cast<std::size_t>(&gain - list_.all().data());
    // Heads are normed one by one if the gain is of one head.
    const auto& heads = attention_.shape();
    const llm::role what = places_[index].what;
    const std::size_t row = what == llm::role::query_norm ? heads.width()
                            : what == llm::role::key_norm ? heads.key_width()
                                                          : shape_.width;
    return {names_[index], tokens_ * (row / gain.count),  gain.count,
            shape_.eps,    shape_.norm == norm_kind::rms, of(values, gain),
            nullptr};
}

std::vector<float> language_network::values_of(const llm::model_weights& model) const {
    std::vector<float> values(list_.size());
    const std::size_t size = attention_.shape().size;
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const parameter& p = list_.all()[i];
        const std::vector<float> x = model.read(places_[i]);
        float* const to = of(values, p);
        const role what = places_[i].what;
        const bool turned = what == role::query || what == role::key || what == role::query_bias ||
                            what == role::key_bias;
        if (!turned || model.shape().pairs == llm::rope_pairs::halves) {
            std::ranges::copy(x, to);
            continue;
        }
        const auto rows = static_cast<std::size_t>(p.shape[0]), width = p.count / rows;
        for (std::size_t row = 0; row < rows; ++row) {
            std::copy_n(x.data() + row_among_neighbours(row, size) * width, width,
                        to + row * width);
        }
    }
    return values;
}

float language_network::forward(execution_context& on, const precision& how,
                                std::span<const float> values, const std::uint32_t* ids,
                                const std::uint32_t* target, std::size_t tokens, std::uint64_t seed,
                                std::uint64_t step, const layer_observer* observer) {
    ids_.put(on, std::span(ids, tokens));
    target_.put(on, std::span(target, tokens));
    tokens_ = tokens;
    seed_ = seed;
    step_ = step;
    const layer_context c = context(on, how, observer);
    const std::size_t narrow = tokens * shape_.width, wide = tokens * shape_.hidden();
    const std::size_t queries = tokens * attention_.shape().width();
    const std::size_t keys = tokens * attention_.shape().key_width();
    float* const a = a_.reserve(on, narrow);
    float* const y = y_.reserve(on, narrow);
    lookup_forward(on, of(values, list_.all().front()), ids_.data(), tokens, shape_.width, a);
    for (std::size_t i = 0; i < shape_.depth; ++i) {
        block_state& b = blocks_[i];
        const auto project = [&](role r, const float* x, array& to, std::size_t count) {
            linear_forward(c, linear(at(i, r), values), x, to.reserve(on, count));
        };
        const auto project_heads = [&](role r, role bias, array& to, std::size_t count) {
            const parameter* const own = shape_.query_bias ? &at(i, bias) : nullptr;
            linear_forward(c, linear(at(i, r), values, own), b.n.data(), to.reserve(on, count));
        };
        norm_forward(c, norm(at(i, role::attention_norm), values), a, b.n.reserve(on, narrow),
                     b.in_kept);
        project_heads(role::query, role::query_bias, b.q, queries);
        project_heads(role::key, role::key_bias, b.k, keys);
        project_heads(role::value, role::value_bias, b.v, keys);
        if (shape_.norm_of_qk != llm::qk_norm::none) {
            norm_forward(c, norm(at(i, role::query_norm), values), b.q.data(), b.q.data(),
                         b.q_kept);
            norm_forward(c, norm(at(i, role::key_norm), values), b.k.data(), b.k.data(), b.k_kept);
        }
        attention_.forward(on, tokens, b.q.data(), b.k.data(), b.v.data(),
                           b.o.reserve(on, queries));
        const parameter* const bias = shape_.output_bias ? &at(i, role::output_bias) : nullptr;
        linear_forward(c, linear(at(i, role::output), values, bias), b.o.data(), y);
        add(on, a, y, narrow, a);
        norm_forward(c, norm(at(i, role::mlp_norm), values), a, b.m.reserve(on, narrow),
                     b.mlp_kept);
        project(role::up, b.m.data(), b.u, wide);
        if (gated()) project(role::gate, b.m.data(), b.g, wide);
        activation_forward(c, shape_.phi, tokens, shape_.hidden(), b.u.data(),
                           b.h.reserve(on, wide), b.g.data());
        linear_forward(c, linear(at(i, role::down), values), b.h.data(), y);
        add(on, a, y, narrow, a);
    }
    norm_forward(c, norm(last_norm(), values), a, last_.reserve(on, narrow), last_kept_);
    float* const logits = logits_.reserve(on, tokens * shape_.vocabulary);
    linear_forward(c, linear(head(), values), last_.data(), logits);
    return cross_entropy_loss(on, logits, target_.data(), tokens, shape_.vocabulary,
                              d_logits_.reserve(on, tokens * shape_.vocabulary));
}

void language_network::backward(execution_context& on, const precision& how,
                                std::span<const float> values, std::span<float> gradients,
                                const layer_observer* observer) {
    on.run(jobs::fill{{}, 0.0f, gradients.data()}, list_.size());
    const layer_context c = context(on, how, observer);
    const std::size_t narrow = tokens_ * shape_.width, wide = tokens_ * shape_.hidden();
    const std::size_t queries = tokens_ * attention_.shape().width();
    const std::size_t keys = tokens_ * attention_.shape().key_width();
    float* const da = y_.reserve(on, narrow);      // gradient of the residual stream
    float* const dx = d_x_.reserve(on, narrow);    // gradient of a branch's input
    float* const part = d_y_.reserve(on, narrow);  // one of several gradients that add up to it
    float* const dq = d_q_.reserve(on, queries);
    float* const d_o = d_o_.reserve(on, queries);  // and that of q or k before its norm
    float* const dk = d_k_.reserve(on, keys);
    float* const dv = d_v_.reserve(on, keys);
    float* const dh = d_h_.reserve(on, wide);
    float* const du = d_u_.reserve(on, wide);
    float* const dg = gated() ? d_g_.reserve(on, wide) : nullptr;
    const auto undo = [&](const parameter& w, const float* x, const float* dy, float* to,
                          const parameter* bias = nullptr) {
        linear_backward(c, linear(w, values), x, dy, to, of(gradients, w),
                        bias == nullptr ? nullptr : of(gradients, *bias));
    };
    const auto undo_norm = [&](const parameter& g, const norm_kept& kept, const float* dy,
                               float* to) {
        norm_backward(c, norm(g, values), kept, dy, to, of(gradients, g), nullptr);
    };
    undo(head(), last_.data(), d_logits_.data(), dx);
    undo_norm(last_norm(), last_kept_, dx, da);
    for (std::size_t i = shape_.depth; i-- > 0;) {
        const block_state& b = blocks_[i];
        const auto bias = [&](bool any, role r) { return any ? &at(i, r) : nullptr; };
        undo(at(i, role::down), b.h.data(), da, dh);
        activation_backward(c, shape_.phi, tokens_, shape_.hidden(), b.u.data(), dh, du, b.g.data(),
                            dg);
        undo(at(i, role::up), b.m.data(), du, dx);
        if (gated()) {
            undo(at(i, role::gate), b.m.data(), dg, part);
            add(on, dx, part, narrow, dx);
        }
        undo_norm(at(i, role::mlp_norm), b.mlp_kept, dx, part);
        add(on, da, part, narrow, da);
        undo(at(i, role::output), b.o.data(), da, d_o, bias(shape_.output_bias, role::output_bias));
        attention_.backward(on, tokens_, b.q.data(), b.k.data(), b.v.data(), d_o, dq, dk, dv);
        // The gradient of a norm cannot be computed in place.
        const float *before_q = dq, *before_k = dk;
        if (shape_.norm_of_qk != llm::qk_norm::none) {
            undo_norm(at(i, role::query_norm), b.q_kept, dq, d_o);
            undo_norm(at(i, role::key_norm), b.k_kept, dk, dq);
            before_q = d_o;
            before_k = dq;
        }
        undo(at(i, role::query), b.n.data(), before_q, dx,
             bias(shape_.query_bias, role::query_bias));
        undo(at(i, role::key), b.n.data(), before_k, part, bias(shape_.query_bias, role::key_bias));
        add(on, dx, part, narrow, dx);
        undo(at(i, role::value), b.n.data(), dv, part, bias(shape_.query_bias, role::value_bias));
        add(on, dx, part, narrow, dx);
        undo_norm(at(i, role::attention_norm), b.in_kept, dx, part);
        add(on, da, part, narrow, da);
    }
    lookup_backward(on, da, ids_.data(), tokens_, shape_.width, of(gradients, list_.all().front()));
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
