// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/layers.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "libmx/base/random.hpp"

namespace mx::lab {
namespace {

// `x` rounded into `buffer`, or `x` itself if nothing is rounded.
const float* rounded(const execution_context& on, rounding how, const float* x, std::size_t count,
                     array& buffer) {
    if (how == rounding::none) return x;
    float* const to = buffer.reserve(on, count);
    on.run(jobs::round{{}, how, x, to}, count);
    return to;
}

void round_result(const execution_context& on, rounding how, std::size_t count, float* y) {
    if (how != rounding::none) on.run(jobs::round{{}, how, y, y}, count);
}

// Random key of an operand: a function of its layer, product and step.
base::random_key draws_of(const layer_context& c, std::string_view layer,
                          std::string_view operand) {
    const std::uint64_t name = base::tensor_id(fmt::format("{}.{}", layer, operand));
    return {c.seed, name ^ (c.step * 0x9e3779b97f4a7c15u)};
}

// The context with the precision of the layer of that name.
layer_context within(const layer_context& c, std::string_view layer) {
    return {c.on, c.how.of(layer), c.buffers, c.seed, c.step, c.observer};
}

void show(const layer_context& c, layer_value value) {
    if (c.observer == nullptr || !*c.observer) return;
    std::vector<float> here;
    if (c.on.device() != nullptr) {
        here = fetched(c.on, std::span(value.data, value.rows * value.cols));
        value.data = here.data();
        value.linear = nullptr;
        value.input = nullptr;
    }
    (*c.observer)(value);
}

const operand_rule& rule_of(const layer_context& c, stage which, std::size_t operand) {
    return c.how.operands[static_cast<std::size_t>(which)][operand];
}

const transform::rotation& rotation_of(const layer_context& c, stage which) {
    return c.how.rotations[static_cast<std::size_t>(which)];
}

void product_by_model(const layer_context& c, stage which, const matrix_view& a, axis over_a,
                      const matrix_view& b, axis over_b, float* to) {
    if (c.on.device() == nullptr) {
        return multiply_by_model(c.how, which, a, over_a, b, over_b, c.on.threads(), to);
    }
    c.on.note_copies("products under an accumulator model");
    const auto here = [&](const matrix_view& m) {
        return fetched(c.on, std::span(m.data, m.rows * m.cols));
    };
    const std::vector<float> left = here(a), right = here(b);
    std::vector<float> product((over_a == axis::last ? a.rows : a.cols) *
                               (over_b == axis::last ? b.rows : b.cols));
    multiply_by_model(c.how, which, {left.data(), a.rows, a.cols, a.key}, over_a,
                      {right.data(), b.rows, b.cols, b.key}, over_b, c.on.threads(),
                      product.data());
    send(c.on, std::span<const float>(product), to);
}

// `beside`: as multiply_beside().
void product_of(const layer_context& c, stage which, const matrix_view& a, axis over_a,
                const matrix_view& b, axis over_b, float* to, bool beside = false) {
    if (c.how.accumulate) return product_by_model(c, which, a, over_a, b, over_b, to);
    const transform::rotation& rotate = rotation_of(c, which);
    array& of_a = beside ? c.buffers.a_beside : c.buffers.a;
    array& of_b = beside ? c.buffers.b_beside : c.buffers.b;
    const operand_view left = quantized(c.on, rule_of(c, which, 0), rotate, a, over_a, of_a);
    const operand_view right = quantized(c.on, rule_of(c, which, 1), rotate, b, over_b, of_b);
    if (beside) return multiply_beside(c.on, left, right, to);
    multiply(c.on, left, right, to);
}

void column_sums(const execution_context& on, rounding how, const float* dy, const float* normal,
                 std::size_t rows, std::size_t cols, float* sums) {
    on.run(jobs::column_sums{{rows}, how, dy, normal, cols, sums}, cols);
}

// A gain or bias as the norm uses it: rounded, then quantized with its recipe.
void prepared(const layer_context& c, const norm_layer& l, rounding how, const float* x,
              const operand_rule& rule, float* to) {
    c.on.run(jobs::round{{}, how, x, to}, l.width);
    const operand_view q = quantized(c.on, rule, {}, {to, 1, l.width, draws_of(c, l.name, "gain")},
                                     axis::last, c.buffers.copy);
    if (q.data != to) copy_there(c.on, q.data, l.width, to);
}

}  // namespace

void linear_forward(const layer_context& all, const linear_layer& l, const float* x, float* y) {
    const layer_context c = within(all, l.name);
    show(c, {l.name, "x", l.tokens, l.in, x});
    const rounding how = c.how.vector_forward;
    const matrix_view mx{rounded(c.on, how, x, l.tokens * l.in, c.buffers.x), l.tokens, l.in,
                         draws_of(c, l.name, "fprop.x")};
    const matrix_view mw{rounded(c.on, how, l.w, l.out * l.in, c.buffers.w), l.out, l.in,
                         draws_of(c, l.name, "fprop.w")};
    product_of(c, stage::fprop, mx, axis::last, mw, axis::last, y);
    round_result(c.on, how, l.tokens * l.out, y);
    if (l.bias == nullptr) return;
    c.on.run(jobs::add_bias{{l.out}, how, l.bias, y}, l.tokens);
}

void linear_backward(const layer_context& all, const linear_layer& l, const float* x,
                     const float* dy, float* dx, float* dw, float* dbias) {
    const layer_context c = within(all, l.name);
    show(c, {l.name, "dy", l.tokens, l.out, dy, false, &l, x});
    const rounding how = c.how.vector_backward;
    const float* const dyr = rounded(c.on, how, dy, l.tokens * l.out, c.buffers.dy);
    const auto key = [&](std::string_view operand) { return draws_of(c, l.name, operand); };
    // Copies of operands share a buffer.
    const bool beside = c.on.device() != nullptr && !c.how.requantize;
    if (dx != nullptr) {
        const float* w = rounded(c.on, how, l.w, l.out * l.in, c.buffers.w);
        if (c.how.requantize) {
            w = quantized_copy(c.on, rule_of(c, stage::fprop, 1), rotation_of(c, stage::fprop),
                               {w, l.out, l.in, key("fprop.w")}, axis::last, c.buffers.copy);
        }
        product_of(c, stage::dgrad, {dyr, l.tokens, l.out, key("dgrad.dy")}, axis::last,
                   {w, l.out, l.in, key("dgrad.w")}, axis::first, dx, beside);
    }
    const float* xr = rounded(c.on, how, x, l.tokens * l.in, c.buffers.x);
    const float* dyw = dyr;
    if (c.how.requantize) {
        xr = quantized_copy(c.on, rule_of(c, stage::fprop, 0), rotation_of(c, stage::fprop),
                            {xr, l.tokens, l.in, key("fprop.x")}, axis::last, c.buffers.copy);
        dyw = quantized_copy(c.on, rule_of(c, stage::dgrad, 0), rotation_of(c, stage::dgrad),
                             {dyr, l.tokens, l.out, key("dgrad.dy")}, axis::last, c.buffers.second);
    }
    product_of(c, stage::wgrad, {dyw, l.tokens, l.out, key("wgrad.dy")}, axis::first,
               {xr, l.tokens, l.in, key("wgrad.x")}, axis::first, dw);
    round_result(c.on, how, l.out * l.in, dw);
    if (dbias != nullptr) column_sums(c.on, how, dyr, nullptr, l.tokens, l.out, dbias);
    if (dx == nullptr) return;
    c.on.join();
    round_result(c.on, how, l.tokens * l.in, dx);
}

void norm_forward(const layer_context& all, const norm_layer& l, const float* x, float* y,
                  norm_kept& kept) {
    const layer_context c = within(all, l.name);
    show(c, {l.name, "x", l.tokens, l.width, x, true});
    const std::size_t count = l.tokens * l.width;
    float* const gain = c.buffers.gain.reserve(c.on, 2 * l.width);
    float* const bias = l.bias == nullptr ? nullptr : gain + l.width;
    prepared(c, l, c.how.norm_statistics, l.gain, c.how.gain, gain);
    if (bias != nullptr) {
        c.on.run(jobs::round{{}, c.how.norm_statistics, l.bias, bias}, l.width);
    }
    x = quantized(c.on, c.how.norm_input, {}, {x, l.tokens, l.width, draws_of(c, l.name, "input")},
                  axis::last, c.buffers.copy)
            .data;
    const simd::norm_rows rows{
        0, l.width, l.eps, l.rms, c.how.norm_forward, c.how.norm_statistics, gain, bias};
    c.on.run(jobs::norm{{l.width},
                        rows,
                        x,
                        y,
                        kept.normal.reserve(c.on, count),
                        kept.variance.reserve(c.on, l.tokens)},
             l.tokens);
    const operand_view out = quantized(c.on, c.how.norm_output, {},
                                       {y, l.tokens, l.width, draws_of(c, l.name, "output")},
                                       axis::last, c.buffers.copy);
    if (out.data != y) copy_there(c.on, out.data, count, y);
}

void norm_backward(const layer_context& all, const norm_layer& l, const norm_kept& kept,
                   const float* dy, float* dx, float* dgain, float* dbias) {
    const layer_context c = within(all, l.name);
    const rounding how = c.how.norm_backward;
    float* const gain = c.buffers.gain.reserve(c.on, l.width);
    prepared(c, l, how, l.gain, c.how.gain, gain);
    const float* const normal = kept.normal.data();
    const simd::norm_rows rows{0, l.width, l.eps, l.rms, how, how, gain, nullptr};
    c.on.run(jobs::norm_back{{l.width}, rows, dy, normal, kept.variance.data(), dx}, l.tokens);
    column_sums(c.on, how, dy, normal, l.tokens, l.width, dgain);
    if (dbias != nullptr) column_sums(c.on, how, dy, nullptr, l.tokens, l.width, dbias);
}

void activation_forward(const layer_context& c, activation what, std::size_t tokens,
                        std::size_t width, const float* u, float* h, const float* gate) {
    const rounding how = c.how.vector_forward;
    if (what == activation::swiglu && gate == nullptr) {
        return c.on.run(jobs::activate_halves{{width}, what, how, u, h}, tokens);
    }
    c.on.run(jobs::activate{{}, what, how, u, gate, h}, tokens * width);
}

void activation_backward(const layer_context& c, activation what, std::size_t tokens,
                         std::size_t width, const float* u, const float* dh, float* du,
                         const float* gate, float* dgate) {
    const rounding how = c.how.vector_backward;
    if (what == activation::swiglu && gate == nullptr) {
        return c.on.run(jobs::activate_halves_back{{width}, what, how, u, dh, du}, tokens);
    }
    c.on.run(jobs::activate_back{{}, what, how, u, gate, dh, du, dgate}, tokens * width);
}

void stepwise_gelu_forward(const layer_context& c, std::size_t count, const float* u, float* h) {
    c.on.run(jobs::stepwise_gelu{{}, c.how.vector_forward, u, h}, count);
}

void add(const execution_context& on, const float* a, const float* b, std::size_t count, float* y) {
    on.run(jobs::add{{}, a, b, y}, count);
}

void lookup_forward(const execution_context& on, const float* of, const std::uint32_t* index,
                    std::size_t count, std::size_t width, float* y) {
    on.run(jobs::look_up{{width}, of, index, y}, count);
}

void lookup_backward(const execution_context& on, const float* dy, const std::uint32_t* index,
                     std::size_t count, std::size_t width, float* dof) {
    on.run(jobs::look_up_back{{count}, dy, index, width, dof}, width);
}

namespace {

// The sum of the losses of rows, from the first to the last. `make` gives their job.
template <typename Make>
double sum_of_losses(execution_context& on, std::size_t rows, array_of<double>& losses,
                     Make&& make) {
    on.run(make(losses.reserve(on, rows)), rows);
    double sum = 0;
    for (const double one : losses.get(on, rows)) sum += one;
    return sum;
}

}  // namespace

float cross_entropy_loss(execution_context& on, const float* y, const std::uint32_t* target,
                         std::size_t tokens, std::size_t width, float* gradient,
                         array_of<double>& losses) {
    const auto count = static_cast<double>(tokens);
    const auto scale = static_cast<float>(1.0 / count);
    const double sum = sum_of_losses(on, tokens, losses, [&](double* to) {
        return jobs::cross_entropy{{width}, y, target, scale, gradient, to};
    });
    return static_cast<float>(sum / count);
}

float mean_squared_error(execution_context& on, const float* y, const float* target,
                         std::size_t tokens, std::size_t width, float* gradient,
                         array_of<double>& losses) {
    const double count = static_cast<double>(tokens) * static_cast<double>(width);
    const auto scale = static_cast<float>(2.0 / count);
    const double sum = sum_of_losses(on, tokens, losses, [&](double* to) {
        return jobs::squared_error{{width}, y, target, scale, gradient, to};
    });
    return static_cast<float>(sum / count);
}

float divergence_loss(execution_context& on, const float* y, const float* target,
                      std::size_t tokens, std::size_t width, float temperature, float* gradient,
                      array_of<double>& losses) {
    const auto count = static_cast<double>(tokens);
    const double t = static_cast<double>(temperature);
    const auto scale = static_cast<float>(t / count);
    const double sum = sum_of_losses(on, tokens, losses, [&](double* to) {
        return jobs::divergence{{width}, y, target, temperature, scale, gradient, to};
    });
    return static_cast<float>(t * t * sum / count);
}

}  // namespace mx::lab
