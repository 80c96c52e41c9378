// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/proxy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/base/random.hpp"

namespace mx::lab {

void parameter_list::add(std::string name, parameter_kind kind, tensor::shape shape) {
    std::size_t count = 1;
    for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
    all_.push_back({std::move(name), kind, std::move(shape), size_, count});
    size_ += count;
}

namespace {

// a / b rounded to the nearest integer, halves up.
std::size_t rounded_ratio(std::size_t a, std::size_t b) { return (2 * a + b) / (2 * b); }

float inverse_root(std::size_t n) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(n)));
}

}  // namespace

std::size_t student_shape::hidden() const {
    return phi == activation::swiglu ? rounded_ratio(8 * width, 3) : 4 * width;
}

student::student(const student_shape& shape) : shape_(shape), blocks_(shape.depth) {
    for (std::size_t i = 0; i < shape.depth; ++i) {
        const std::string layer = fmt::format("layers.{}.", i);
        if (shape.norm != norm_kind::none) {
            list_.add(layer + "ln.weight", parameter_kind::norm_gain, {shape.width});
        }
        if (shape.norm == norm_kind::layer) {
            list_.add(layer + "ln.bias", parameter_kind::norm_bias, {shape.width});
        }
        list_.add(layer + "fc1.weight", parameter_kind::weight, {shape.inner(), shape.width});
        list_.add(layer + "fc2.weight", parameter_kind::weight, {shape.width, shape.hidden()});
        list_.add(layer + "fc2.bias", parameter_kind::bias, {shape.width});
        for (const char* part : {"ln", "fc1", "fc2"}) names_.push_back(layer + part);
    }
    per_block_ = shape.depth == 0 ? 0 : list_.all().size() / shape.depth;
}

norm_layer student::norm(std::size_t i, std::span<const float> values) const {
    const bool rms = shape_.norm == norm_kind::rms;
    return {names_[3 * i],
            tokens_,
            shape_.width,
            norm_eps,
            rms,
            of(values, at(i, 0)),
            rms ? nullptr : of(values, at(i, 1))};
}

linear_layer student::fc1(std::size_t i, std::span<const float> values) const {
    return {names_[3 * i + 1],
            tokens_,
            shape_.width,
            shape_.inner(),
            of(values, at(i, per_block_ - 3)),
            nullptr};
}

linear_layer student::fc2(std::size_t i, std::span<const float> values) const {
    return {names_[3 * i + 2],
            tokens_,
            shape_.hidden(),
            shape_.width,
            of(values, at(i, per_block_ - 2)),
            of(values, at(i, per_block_ - 1))};
}

std::vector<layer_name> student::layers() const {
    std::vector<layer_name> all;
    for (const std::string& name : names_) all.push_back({name});
    return all;
}

const float* student::forward(execution_context& on, const precision& how,
                              std::span<const float> values, const float* x, std::size_t tokens,
                              std::uint64_t seed, std::uint64_t step,
                              const layer_observer* observer) {
    x_ = x;
    tokens_ = tokens;
    seed_ = seed;
    step_ = step;
    const layer_context c = context(on, how, observer);
    forward_.run(c, {values.data(), x}, tokens, [&] { forward(c, values); });
    return shape_.depth == 0 ? x : blocks_.back().out.data();
}

void student::forward(const layer_context& c, std::span<const float> values) {
    const float* a = x_;
    for (std::size_t i = 0; i < shape_.depth; ++i) {
        block_state& b = blocks_[i];
        const float* z = a;
        if (shape_.norm != norm_kind::none) {
            float* const normed = b.normed.reserve(c.on, tokens_ * shape_.width);
            norm_forward(c, norm(i, values), a, normed, b.kept);
            z = normed;
        }
        float* const u = b.u.reserve(c.on, tokens_ * shape_.inner());
        linear_forward(c, fc1(i, values), z, u);
        float* const h = b.h.reserve(c.on, tokens_ * shape_.hidden());
        activation_forward(c, shape_.phi, tokens_, shape_.hidden(), u, h);
        float* const out = b.out.reserve(c.on, tokens_ * shape_.width);
        linear_forward(c, fc2(i, values), h, out);
        add(c.on, a, out, tokens_ * shape_.width, out);
        a = out;
    }
}

void student::backward(execution_context& on, const precision& how, std::span<const float> values,
                       float* dy, std::span<float> gradients, const layer_observer* observer) {
    const layer_context c = context(on, how, observer);
    backward_.run(c, {values.data(), x_, dy, gradients.data()}, tokens_,
                  [&] { backward(c, values, dy, gradients); });
}

void student::backward(const layer_context& c, std::span<const float> values, float* dy,
                       std::span<float> gradients) {
    c.on.run(jobs::fill{{}, 0.0f, gradients.data()}, list_.size());
    float* const dh = dh_.reserve(c.on, tokens_ * shape_.hidden());
    float* const du = du_.reserve(c.on, tokens_ * shape_.inner());
    float* const dz = dz_.reserve(c.on, tokens_ * shape_.width);
    float* const da = da_.reserve(c.on, tokens_ * shape_.width);
    for (std::size_t i = shape_.depth; i-- > 0;) {
        const block_state& kept = blocks_[i];
        const float* const in = i == 0 ? x_ : blocks_[i - 1].out.data();
        const float* const z = shape_.norm == norm_kind::none ? in : kept.normed.data();
        linear_backward(c, fc2(i, values), kept.h.data(), dy, dh,
                        of(gradients, at(i, per_block_ - 2)), of(gradients, at(i, per_block_ - 1)));
        activation_backward(c, shape_.phi, tokens_, shape_.hidden(), kept.u.data(), dh, du);
        linear_backward(c, fc1(i, values), z, du, dz, of(gradients, at(i, per_block_ - 3)),
                        nullptr);
        const float* through = dz;
        if (shape_.norm != norm_kind::none) {
            const bool bias = shape_.norm == norm_kind::layer && c.how.norm_bias_trains;
            norm_backward(c, norm(i, values), kept.kept, dz, da, of(gradients, at(i, 0)),
                          bias ? of(gradients, at(i, 1)) : nullptr);
            through = da;
        }
        add(c.on, dy, through, tokens_ * shape_.width, dy);
    }
}

void uniform(const base::random_key& key, std::size_t count, float* x) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto u = static_cast<double>(base::random_u32(key, i));
        x[i] = static_cast<float>((u + 0.5) * 0x1p-31 - 1.0);
    }
}

std::vector<float> initial_values(const parameter_list& list, start how, float least_gain,
                                  float most_gain, std::uint64_t seed, torch_stream* torch) {
    std::vector<float> values(list.size());
    std::size_t fan_in = 1;  // a bias uses that of the preceding weight
    for (const parameter& p : list.all()) {
        float* const x = of(values, p);
        const base::random_key key{seed, base::tensor_id("init." + p.name)};
        switch (p.kind) {
            case parameter_kind::norm_bias:
                break;
            case parameter_kind::norm_gain:
                uniform(key, p.count, x);
                for (std::size_t i = 0; i < p.count; ++i) {
                    const float share = (x[i] + 1.0f) * 0.5f;
                    x[i] = least_gain + share * (most_gain - least_gain);
                }
                break;
            case parameter_kind::weight:
            case parameter_kind::bias:
                if (p.kind == parameter_kind::weight) fan_in = static_cast<std::size_t>(p.shape[1]);
                if (torch) {
                    torch->uniform(1 / std::sqrt(static_cast<double>(fan_in)), {x, p.count});
                } else if (how == start::pytorch) {
                    uniform(key, p.count, x);
                    const float bound = inverse_root(fan_in);
                    for (std::size_t i = 0; i < p.count; ++i) x[i] *= bound;
                } else if (p.kind == parameter_kind::weight) {
                    // Xavier's standard deviation, sqrt(2 / (fan in + fan out)), times its gain.
                    const auto fan = static_cast<double>(p.shape[0] + p.shape[1]);
                    const auto deviation = static_cast<float>(0.5 * std::sqrt(2.0 / fan));
                    simd::scalar_kernels.normal(key, 0, p.count, x);
                    for (std::size_t i = 0; i < p.count; ++i) x[i] *= deviation;
                }
                break;
        }
    }
    return values;
}

teacher::teacher(const student_shape& shape, std::uint64_t seed, torch_stream* torch)
    : shape_(shape),
      inner_(shape.phi == activation::swiglu ? 2 * rounded_ratio(2 * shape.width, 3) : shape.width),
      hidden_(shape.phi == activation::swiglu ? inner_ / 2 : inner_) {
    for (std::size_t i = 0; i < shape.depth; ++i) {
        const std::string layer = fmt::format("teacher.{}.", i);
        list_.add(layer + "fc1.weight", parameter_kind::weight, {inner_, shape.width});
        list_.add(layer + "fc2.weight", parameter_kind::weight, {shape.width, hidden_});
    }
    values_.assign(initial_values(list_, start::pytorch, 1, 1, seed, torch));
}

void teacher::read(const tensor_file& file) {
    if (!file.has(list_.all().front().name)) return;
    for (const parameter& p : list_.all()) {
        std::ranges::copy(file.read(p.name, p.shape), of(values_.change_here(), p));
    }
}

void teacher::forward(execution_context& on, const float* x, std::size_t tokens, float* y,
                      const precision& how, std::uint64_t seed, std::uint64_t step) {
    const layer_context c{on, how, buffers_, seed, step};
    const std::span<const float> values = values_.there(on);
    forward_.run(c, {values.data(), x, y}, tokens, [&] { forward(c, values, x, tokens, y); });
}

void teacher::forward(const layer_context& c, std::span<const float> values, const float* x,
                      std::size_t tokens, float* y) {
    const std::size_t d = shape_.width;
    float* const u = u_.reserve(c.on, tokens * inner_);
    float* const h = h_.reserve(c.on, tokens * hidden_);
    float* const next = y_.reserve(c.on, tokens * d);
    const bool stepwise = shape_.phi == activation::gelu && c.how.vector_forward != rounding::none;
    for (std::size_t i = 0; i < shape_.depth; ++i) {
        const parameter &fc1 = list_.all()[2 * i], &fc2 = list_.all()[2 * i + 1];
        linear_forward(c, {fc1.name, tokens, d, inner_, of(values, fc1), nullptr}, x, u);
        if (stepwise) {
            stepwise_gelu_forward(c, tokens * hidden_, u, h);
        } else {
            activation_forward(c, shape_.phi, tokens, hidden_, u, h);
        }
        // The last product is written to y. A product cannot overwrite its operand.
        float* const to = i + 1 == shape_.depth ? y : next;
        linear_forward(c, {fc2.name, tokens, hidden_, d, of(values, fc2), nullptr}, h, to);
        x = to;
    }
}

}  // namespace mx::lab
