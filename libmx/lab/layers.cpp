// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "libmx/base/random.hpp"

namespace mx::lab {
namespace {

constexpr std::size_t grain = 32768;  // elements; smaller ranges are not worth a thread

std::size_t rows_of(std::size_t width) { return std::max<std::size_t>(1, grain / width); }

// `x` rounded into `buffer`, or `x` itself if nothing is rounded.
const float* rounded(execution_context& on, rounding how, const float* x, std::size_t count,
                     base::aligned_buffer<float>& buffer) {
    if (how == rounding::none) return x;
    float* const to = buffer.room_for(count);
    on.split(count, grain, [&](std::size_t begin, std::size_t end, int) {
        on.kernels().round(how, x + begin, end - begin, to + begin);
    });
    return to;
}

void round_result(execution_context& on, rounding how, std::size_t count, float* y) {
    if (how == rounding::none) return;
    on.split(count, grain, [&](std::size_t begin, std::size_t end, int) {
        on.kernels().round(how, y + begin, end - begin, y + begin);
    });
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

void show(const layer_context& c, const layer_value& value) {
    if (c.observer != nullptr && *c.observer) (*c.observer)(value);
}

const operand_rule& rule_of(const layer_context& c, stage which, std::size_t operand) {
    return c.how.operands[static_cast<std::size_t>(which)][operand];
}

const transform::rotation& rotation_of(const layer_context& c, stage which) {
    return c.how.rotations[static_cast<std::size_t>(which)];
}

void product_of(const layer_context& c, stage which, const matrix_view& a, axis over_a,
                const matrix_view& b, axis over_b, float* to) {
    if (c.how.accumulate) {
        return multiply_by_model(c.how, which, a, over_a, b, over_b, c.on.threads(), to);
    }
    const transform::rotation& rotate = rotation_of(c, which);
    const operand_view left = quantized(c.on, rule_of(c, which, 0), rotate, a, over_a, c.buffers.a);
    const operand_view right =
        quantized(c.on, rule_of(c, which, 1), rotate, b, over_b, c.buffers.b);
    multiply(c.on, left, right, to);
}

void column_sums(execution_context& on, rounding how, const float* dy, const float* normal,
                 std::size_t rows, std::size_t cols, float* sums) {
    const std::size_t least = std::max<std::size_t>(16, 4 * grain / rows / 16 * 16);
    on.split(cols, least, [&](std::size_t begin, std::size_t end, int) {
        on.kernels().column_sums(how, dy, normal, rows, cols, begin, end, sums);
    });
}

// A gain or bias as the norm uses it: rounded, then quantized with its recipe.
void prepared(const layer_context& c, const norm_layer& l, rounding how, const float* x,
              const operand_rule& rule, float* to) {
    c.on.kernels().round(how, x, l.width, to);
    const operand_view q = quantized(c.on, rule, {}, {to, 1, l.width, draws_of(c, l.name, "gain")},
                                     axis::last, c.buffers.copy);
    if (q.data != to) std::copy_n(q.data, l.width, to);
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
    c.on.split(l.tokens, rows_of(l.out), [&](std::size_t begin, std::size_t end, int) {
        c.on.kernels().add_bias(how, l.bias, end - begin, l.out, y + begin * l.out);
    });
}

void linear_backward(const layer_context& all, const linear_layer& l, const float* x,
                     const float* dy, float* dx, float* dw, float* dbias) {
    const layer_context c = within(all, l.name);
    show(c, {l.name, "dy", l.tokens, l.out, dy, false, &l, x});
    const rounding how = c.how.vector_backward;
    const float* const dyr = rounded(c.on, how, dy, l.tokens * l.out, c.buffers.dy);
    const auto key = [&](std::string_view operand) { return draws_of(c, l.name, operand); };
    if (dx != nullptr) {
        const float* w = rounded(c.on, how, l.w, l.out * l.in, c.buffers.w);
        if (c.how.requantize) {
            w = quantized_copy(c.on, rule_of(c, stage::fprop, 1), rotation_of(c, stage::fprop),
                               {w, l.out, l.in, key("fprop.w")}, axis::last, c.buffers.copy);
        }
        product_of(c, stage::dgrad, {dyr, l.tokens, l.out, key("dgrad.dy")}, axis::last,
                   {w, l.out, l.in, key("dgrad.w")}, axis::first, dx);
        round_result(c.on, how, l.tokens * l.in, dx);
    }
    const float* xr = rounded(c.on, how, x, l.tokens * l.in, c.buffers.x);
    const float* dyw = dyr;
    base::aligned_buffer<float> second;
    if (c.how.requantize) {
        xr = quantized_copy(c.on, rule_of(c, stage::fprop, 0), rotation_of(c, stage::fprop),
                            {xr, l.tokens, l.in, key("fprop.x")}, axis::last, c.buffers.copy);
        dyw = quantized_copy(c.on, rule_of(c, stage::dgrad, 0), rotation_of(c, stage::dgrad),
                             {dyr, l.tokens, l.out, key("dgrad.dy")}, axis::last, second);
    }
    product_of(c, stage::wgrad, {dyw, l.tokens, l.out, key("wgrad.dy")}, axis::first,
               {xr, l.tokens, l.in, key("wgrad.x")}, axis::first, dw);
    round_result(c.on, how, l.out * l.in, dw);
    if (dbias != nullptr) column_sums(c.on, how, dyr, nullptr, l.tokens, l.out, dbias);
}

void norm_forward(const layer_context& all, const norm_layer& l, const float* x, float* y,
                  norm_kept& kept) {
    const layer_context c = within(all, l.name);
    show(c, {l.name, "x", l.tokens, l.width, x, true});
    const std::size_t count = l.tokens * l.width;
    float* const gain = c.buffers.gain.room_for(2 * l.width);
    float* const bias = gain + l.width;
    prepared(c, l, c.how.norm_statistics, l.gain, c.how.gain, gain);
    if (l.bias != nullptr) c.on.kernels().round(c.how.norm_statistics, l.bias, l.width, bias);
    x = quantized(c.on, c.how.norm_input, {}, {x, l.tokens, l.width, draws_of(c, l.name, "input")},
                  axis::last, c.buffers.copy)
            .data;
    float* const normal = kept.normal.room_for(count);
    float* const variance = kept.variance.room_for(l.tokens);
    c.on.split(l.tokens, rows_of(l.width), [&](std::size_t begin, std::size_t end, int) {
        const std::size_t at = begin * l.width;
        const simd::norm_rows rows{end - begin,
                                   l.width,
                                   l.eps,
                                   l.rms,
                                   c.how.norm_forward,
                                   c.how.norm_statistics,
                                   gain,
                                   l.bias != nullptr ? bias : nullptr};
        c.on.kernels().norm(rows, x + at, y + at, normal + at, variance + begin);
    });
    const operand_view out = quantized(c.on, c.how.norm_output, {},
                                       {y, l.tokens, l.width, draws_of(c, l.name, "output")},
                                       axis::last, c.buffers.copy);
    if (out.data != y) std::copy_n(out.data, count, y);
}

void norm_backward(const layer_context& all, const norm_layer& l, const norm_kept& kept,
                   const float* dy, float* dx, float* dgain, float* dbias) {
    const layer_context c = within(all, l.name);
    const rounding how = c.how.norm_backward;
    float* const gain = c.buffers.gain.room_for(l.width);
    prepared(c, l, how, l.gain, c.how.gain, gain);
    const float* const normal = kept.normal.data();
    const float* const variance = kept.variance.data();
    c.on.split(l.tokens, rows_of(l.width), [&](std::size_t begin, std::size_t end, int) {
        const std::size_t at = begin * l.width;
        const simd::norm_rows rows{end - begin, l.width, l.eps, l.rms, how, how, gain, nullptr};
        c.on.kernels().norm_back(rows, dy + at, normal + at, variance + begin, dx + at);
    });
    column_sums(c.on, how, dy, normal, l.tokens, l.width, dgain);
    if (dbias != nullptr) column_sums(c.on, how, dy, nullptr, l.tokens, l.width, dbias);
}

void activation_forward(const layer_context& c, activation what, std::size_t tokens,
                        std::size_t width, const float* u, float* h, const float* gate) {
    const rounding how = c.how.vector_forward;
    if (what != activation::swiglu || gate != nullptr) {
        c.on.split(tokens * width, grain, [&](std::size_t begin, std::size_t end, int) {
            c.on.kernels().activate(what, how, u + begin, gate == nullptr ? nullptr : gate + begin,
                                    end - begin, h + begin);
        });
        return;
    }
    c.on.split(tokens, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t r = begin; r < end; ++r) {
            const float* const row = u + 2 * r * width;
            c.on.kernels().activate(what, how, row, row + width, width, h + r * width);
        }
    });
}

void activation_backward(const layer_context& c, activation what, std::size_t tokens,
                         std::size_t width, const float* u, const float* dh, float* du,
                         const float* gate, float* dgate) {
    const rounding how = c.how.vector_backward;
    if (what != activation::swiglu || gate != nullptr) {
        c.on.split(tokens * width, grain, [&](std::size_t begin, std::size_t end, int) {
            c.on.kernels().activate_back(
                what, how, u + begin, gate == nullptr ? nullptr : gate + begin, dh + begin,
                end - begin, du + begin, dgate == nullptr ? nullptr : dgate + begin);
        });
        return;
    }
    c.on.split(tokens, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = 2 * r * width;
            c.on.kernels().activate_back(what, how, u + at, u + at + width, dh + r * width, width,
                                         du + at, du + at + width);
        }
    });
}

void stepwise_gelu_forward(const layer_context& c, std::size_t count, const float* u, float* h) {
    c.on.split(count, grain, [&](std::size_t begin, std::size_t end, int) {
        c.on.kernels().stepwise_gelu(c.how.vector_forward, u + begin, end - begin, h + begin);
    });
}

void add(execution_context& on, const float* a, const float* b, std::size_t count, float* y) {
    on.split(count, grain, [&](std::size_t begin, std::size_t end, int) {
        on.kernels().add(a + begin, b + begin, end - begin, y + begin);
    });
}

void lookup_forward(execution_context& on, const float* of, const std::uint32_t* index,
                    std::size_t count, std::size_t width, float* y) {
    on.split(count, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t i = begin; i < end; ++i) {
            std::copy_n(of + index[i] * width, width, y + i * width);
        }
    });
}

void lookup_backward(execution_context& on, const float* dy, const std::uint32_t* index,
                     std::size_t count, std::size_t width, float* dof) {
    for (std::size_t i = 0; i < count; ++i) {
        float* const to = dof + index[i] * width;
        on.kernels().add(to, dy + i * width, width, to);
    }
}

float cross_entropy_loss(execution_context& on, const float* y, const std::uint32_t* target,
                         std::size_t tokens, std::size_t width, float* gradient) {
    const auto scale = static_cast<float>(1.0 / static_cast<double>(tokens));
    std::vector<double> rows(tokens);
    on.split(tokens, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = r * width;
            rows[r] = on.kernels().cross_entropy(y + at, target[r], width, scale, gradient + at);
        }
    });
    double sum = 0;
    for (const double row : rows) sum += row;
    return static_cast<float>(sum / static_cast<double>(tokens));
}

float mean_squared_error(execution_context& on, const float* y, const float* target,
                         std::size_t tokens, std::size_t width, float* gradient) {
    const double count = static_cast<double>(tokens) * static_cast<double>(width);
    const auto scale = static_cast<float>(2.0 / count);
    std::vector<double> rows(tokens);
    on.split(tokens, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = r * width;
            rows[r] = on.kernels().squared_error(y + at, target + at, width, scale, gradient + at);
        }
    });
    double sum = 0;
    for (const double row : rows) sum += row;
    return static_cast<float>(sum / count);
}

float divergence_loss(execution_context& on, const float* y, const float* target,
                      std::size_t tokens, std::size_t width, float temperature, float* gradient) {
    const auto count = static_cast<double>(tokens);
    const double t = static_cast<double>(temperature);
    const auto scale = static_cast<float>(t / count);
    std::vector<double> rows(tokens);
    on.split(tokens, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = r * width;
            rows[r] = on.kernels().divergence(y + at, target + at, width, temperature, scale,
                                              gradient + at);
        }
    });
    double sum = 0;
    for (const double row : rows) sum += row;
    return static_cast<float>(t * t * sum / count);
}

}  // namespace mx::lab
