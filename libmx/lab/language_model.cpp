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
    to.routing = {s.experts, s.experts_used, s.experts_renormalized, 0};
    to.spelling = s.kind;
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
    const auto has = [&](role r, std::size_t block, parameter_kind kind,
                         const tensor::shape& extents, std::size_t expert = 0) {
        at_[{r, block, expert}] = list_.all().size();
        places_.push_back({r, block, expert});
        list_.add(llm::hugging_face_name(*shape.spelling, places_.back()), kind, extents);
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
        if (!mixture()) {
            weight(role::up, h, d);
            if (gated()) weight(role::gate, h, d);
            weight(role::down, d, h);
            continue;
        }
        weight(role::router, shape.routing.count, d);
        for (std::size_t e = 0; e < shape.routing.count; ++e) {
            const auto of_expert = [&](role r, std::size_t out, std::size_t in) {
                has(r, i, parameter_kind::weight, {out, in}, e);
            };
            of_expert(role::expert_up, h, d);
            if (gated()) of_expert(role::expert_gate, h, d);
            of_expert(role::expert_down, d, h);
        }
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
        const bool kept =
            places_[static_cast<std::size_t>(&p - list_.all().data())].what == role::router;
        if (layer && &p != &head()) all.push_back({name(p), kept});
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
    const double used = mixture() ? static_cast<double>(shape_.routing.used) : 1;
    const double mlp = used * (gated() ? 3 : 2) * h;
    const double routed = mixture() ? static_cast<double>(shape_.routing.count) : 0;
    const double spread = mixture() ? used * d : 0;  // rows of experts
    const double block = n * (4 * d + 2 + 2 * qw + 2 * kv + (normed ? 2 * (qw + kv) + 2 : 0) + mlp +
                              routed + 2 * spread);
    const double shared =
        n * (3 * d + 2 * v) + n * (3 * d + qw + 2 * kv + mlp + routed + 3 * spread);
    // Both operands of a product, the one rounded before the product, and the packed one.
    const double widest = std::max({d, qw, h, v});
    return static_cast<double>(shape_.depth) * block + shared + 4 * n * widest;
}

linear_layer language_network::linear(const parameter& w, std::span<const float> values,
                                      const parameter* bias) const {
    linear_layer l = linear(w, values, tokens_);
    if (bias != nullptr) l.bias = of(values, *bias);
    return l;
}

linear_layer language_network::linear(const parameter& w, std::span<const float> values,
                                      std::size_t rows) const {
    const auto index = static_cast<std::size_t>(&w - list_.all().data());
    return {names_[index],
            rows,
            static_cast<std::size_t>(w.shape[1]),
            static_cast<std::size_t>(w.shape[0]),
            of(values, w),
            nullptr};
}

double language_network::share_of_tokens(const parameter& p) const {
    const role what = places_[static_cast<std::size_t>(&p - list_.all().data())].what;
    if (what < role::expert_gate) return 1;
    return static_cast<double>(shape_.routing.used) / static_cast<double>(shape_.routing.count);
}

void language_network::mlp_forward(const layer_context& c, std::size_t block,
                                   std::span<const float> values, float* y) {
    block_state& b = blocks_[block];
    const std::size_t width = shape_.width, h = shape_.hidden(), rows = rows_of_mlp();
    float* const u = b.u.reserve(c.on, rows * h);
    float* const g = gated() ? b.g.reserve(c.on, rows * h) : nullptr;
    float* const to = b.h.reserve(c.on, rows * h);
    const auto project = [&](const parameter& w, std::size_t first, std::size_t count,
                             const float* x, float* out) {
        const auto in = static_cast<std::size_t>(w.shape[1]);
        const auto cols = static_cast<std::size_t>(w.shape[0]);
        linear_forward(c, linear(w, values, count), x + first * in, out + first * cols);
    };
    if (!mixture()) {
        project(at(block, role::up), 0, rows, b.m.data(), u);
        if (gated()) project(at(block, role::gate), 0, rows, b.m.data(), g);
        activation_forward(c, shape_.phi, rows, h, u, to, g);
        project(at(block, role::down), 0, rows, to, y);
        return;
    }
    const routing_rule& rule = shape_.routing;
    float* const scores = b.scores.reserve(c.on, tokens_ * rule.count);
    project(at(block, role::router), 0, tokens_, b.m.data(), scores);
    b.choices.choose(c.on, rule, scores, tokens_);
    float* const x = b.x.reserve(c.on, rows * width);
    float* const out = b.y.reserve(c.on, rows * width);
    b.choices.spread(c.on, b.m.data(), width, false, x);
    const auto by_experts = [&](role r, const float* from, float* into) {
        for (std::size_t e = 0; e < rule.count; ++e) {
            const std::size_t first = b.choices.first_row(e);
            const std::size_t count = b.choices.first_row(e + 1) - first;
            if (count != 0) project(at(block, r, e), first, count, from, into);
        }
    };
    by_experts(role::expert_up, x, u);
    if (gated()) by_experts(role::expert_gate, x, g);
    activation_forward(c, shape_.phi, rows, h, u, to, g);
    by_experts(role::expert_down, to, out);
    b.choices.collect(c.on, out, width, true, y);
}

void language_network::mlp_backward(const layer_context& c, std::size_t block,
                                    std::span<const float> values, std::span<float> gradients,
                                    const float* dy, float* dx) {
    block_state& b = blocks_[block];
    const std::size_t width = shape_.width, h = shape_.hidden(), rows = rows_of_mlp();
    float* const dh = d_h_.reserve(c.on, rows * h);
    float* const du = d_u_.reserve(c.on, rows * h);
    float* const dg = gated() ? d_g_.reserve(c.on, rows * h) : nullptr;
    const auto undo = [&](const parameter& w, std::size_t first, std::size_t count, const float* x,
                          const float* d, float* to) {
        const auto in = static_cast<std::size_t>(w.shape[1]);
        const auto cols = static_cast<std::size_t>(w.shape[0]);
        linear_backward(c, linear(w, values, count), x + first * in, d + first * cols,
                        to + first * in, of(gradients, w), nullptr);
    };
    const auto undo_activation = [&] {
        activation_backward(c, shape_.phi, rows, h, b.u.data(), dh, du,
                            gated() ? b.g.data() : nullptr, dg);
    };
    if (!mixture()) {
        float* const part = d_y_.data();
        undo(at(block, role::down), 0, rows, b.h.data(), dy, dh);
        undo_activation();
        undo(at(block, role::up), 0, rows, b.m.data(), du, dx);
        if (!gated()) return;
        undo(at(block, role::gate), 0, rows, b.m.data(), dg, part);
        add(c.on, dx, part, rows * width, dx);
        return;
    }
    const routing_rule& rule = shape_.routing;
    const auto by_experts = [&](role r, const float* x, const float* d, float* to) {
        for (std::size_t e = 0; e < rule.count; ++e) {
            const std::size_t first = b.choices.first_row(e);
            const std::size_t count = b.choices.first_row(e + 1) - first;
            if (count != 0) undo(at(block, r, e), first, count, x, d, to);
        }
    };
    float* const d_rows = d_rows_.reserve(c.on, rows * width);
    float* const d_in = d_in_.reserve(c.on, rows * width);
    float* const d_part = d_part_.reserve(c.on, rows * width);
    float* const d_scores = d_scores_.reserve(c.on, tokens_ * rule.count);
    b.choices.spread(c.on, dy, width, false, d_rows);
    b.choices.scores_backward(c.on, b.y.data(), d_rows, width, d_scores);
    b.choices.spread(c.on, dy, width, true, d_rows);
    by_experts(role::expert_down, b.h.data(), d_rows, dh);
    undo_activation();
    by_experts(role::expert_up, b.x.data(), du, d_in);
    if (gated()) {
        by_experts(role::expert_gate, b.x.data(), dg, d_part);
        add(c.on, d_in, d_part, rows * width, d_in);
    }
    b.choices.collect(c.on, d_in, width, false, dx);
    float* const part = d_y_.data();
    undo(at(block, role::router), 0, tokens_, b.m.data(), d_scores, part);
    add(c.on, dx, part, tokens_ * width, dx);
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
    forward_.run(c, {values.data()}, tokens, [&] { forward(c, values); });
    return cross_entropy_loss(on, logits_.data(), target_.data(), tokens, shape_.vocabulary,
                              d_logits_.reserve(on, tokens * shape_.vocabulary), losses_);
}

void language_network::forward(const layer_context& c, std::span<const float> values) {
    execution_context& on = c.on;
    const std::size_t tokens = tokens_, narrow = tokens * shape_.width;
    const std::size_t queries = tokens * attention_.shape().width();
    const std::size_t keys = tokens * attention_.shape().key_width();
    float* const a = a_.reserve(on, narrow);
    float* const y = y_.reserve(on, narrow);
    lookup_forward(on, of(values, list_.all().front()), ids_.data(), tokens, shape_.width, a);
    for (std::size_t i = 0; i < shape_.depth; ++i) {
        block_state& b = blocks_[i];
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
        mlp_forward(c, i, values, y);
        add(on, a, y, narrow, a);
    }
    norm_forward(c, norm(last_norm(), values), a, last_.reserve(on, narrow), last_kept_);
    linear_forward(c, linear(head(), values), last_.data(),
                   logits_.reserve(on, tokens * shape_.vocabulary));
}

void language_network::backward(execution_context& on, const precision& how,
                                std::span<const float> values, std::span<float> gradients,
                                const layer_observer* observer) {
    const layer_context c = context(on, how, observer);
    backward_.run(c, {values.data(), gradients.data()}, tokens_,
                  [&] { backward(c, values, gradients); });
}

void language_network::backward(const layer_context& c, std::span<const float> values,
                                std::span<float> gradients) {
    execution_context& on = c.on;
    on.run(jobs::fill{{}, 0.0f, gradients.data()}, list_.size());
    const std::size_t narrow = tokens_ * shape_.width;
    const std::size_t queries = tokens_ * attention_.shape().width();
    const std::size_t keys = tokens_ * attention_.shape().key_width();
    float* const da = y_.reserve(on, narrow);      // gradient of the residual stream
    float* const dx = d_x_.reserve(on, narrow);    // gradient of a branch's input
    float* const part = d_y_.reserve(on, narrow);  // one of several gradients that add up to it
    float* const dq = d_q_.reserve(on, queries);
    float* const d_o = d_o_.reserve(on, queries);  // and that of q or k before its norm
    float* const dk = d_k_.reserve(on, keys);
    float* const dv = d_v_.reserve(on, keys);
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
        mlp_backward(c, i, values, gradients, da, dx);
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
