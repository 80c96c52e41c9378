// SPDX-License-Identifier: Apache-2.0
// The gradient of every layer against central differences of the layer stated again in float64.
#include <cmath>
#include <vector>

#include "libmx/lab/layers.hpp"
#include "libmx/lab/optimizer.hpp"
#include "libmx/lab/proxy.hpp"
#include "tests/catch.hpp"
#include "tests/lab/gradients.hpp"

namespace mx::lab {
namespace {

std::vector<float> numbers(std::uint64_t tensor, std::size_t count, float scale = 1) {
    std::vector<float> x(count);
    simd::scalar_kernels.normal({11, tensor}, 0, count, x.data());
    for (float& v : x) v *= scale;
    return x;
}

doubles linear(const doubles& x, const doubles& w, const doubles& bias, std::size_t tokens,
               std::size_t in, std::size_t out) {
    doubles y(tokens * out);
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t o = 0; o < out; ++o) {
            double sum = bias.empty() ? 0 : bias[o];
            for (std::size_t i = 0; i < in; ++i) sum += x[t * in + i] * w[o * in + i];
            y[t * out + o] = sum;
        }
    }
    return y;
}

doubles norm(const doubles& x, const doubles& gain, const doubles& bias, std::size_t tokens,
             std::size_t width, bool rms) {
    doubles y(x.size());
    for (std::size_t t = 0; t < tokens; ++t) {
        double mean = 0, square = 0;
        const auto n = static_cast<double>(width);
        for (std::size_t i = 0; i < width && !rms; ++i) mean += x[t * width + i] / n;
        for (std::size_t i = 0; i < width; ++i) square += std::pow(x[t * width + i] - mean, 2) / n;
        for (std::size_t i = 0; i < width; ++i) {
            const double normal =
                (x[t * width + i] - mean) / std::sqrt(square + static_cast<double>(norm_eps));
            y[t * width + i] = gain[i] * normal + (bias.empty() ? 0 : bias[i]);
        }
    }
    return y;
}

double phi(activation what, double x, double gate) {
    switch (what) {
        case activation::none:
            return x;
        case activation::relu:
            return x > 0 ? x : 0;
        case activation::gelu:
            return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        case activation::swiglu:
            return x * gate / (1 + std::exp(-gate));
    }
    return 0;
}

// float32 rounds each of some hundred operations.
constexpr double close = 2e-6;

TEST_CASE("a linear layer and its gradients are those of its definition") {
    constexpr std::size_t tokens = 9, in = 37, out = 21;
    execution_context on;
    const precision how;
    layer_buffers buffers;
    const layer_context c{on, how, buffers};
    const std::vector<float> x = numbers(1, tokens * in), w = numbers(2, out * in),
                             bias = numbers(3, out), dy = numbers(4, tokens * out);
    for (const bool with_bias : {true, false}) {
        const doubles b = with_bias ? wide(bias) : doubles();
        const linear_layer l{"l", tokens, in, out, w.data(), with_bias ? bias.data() : nullptr};
        std::vector<float> y(tokens * out), dx(tokens * in), dw(out * in), dbias(out);
        linear_forward(c, l, x.data(), y.data());
        CHECK(distance(y, linear(wide(x), wide(w), b, tokens, in, out)) < close);
        linear_backward(c, l, x.data(), dy.data(), dx.data(), dw.data(),
                        with_bias ? dbias.data() : nullptr);
        const auto loss = [&](const doubles& vx, const doubles& vw, const doubles& vb) {
            return dot(linear(vx, vw, vb, tokens, in, out), dy);
        };
        CHECK(distance(dx, differences(wide(x), [&](const doubles& v) {
                           return loss(v, wide(w), b);
                       })) < close);
        CHECK(distance(dw, differences(wide(w), [&](const doubles& v) {
                           return loss(wide(x), v, b);
                       })) < close);
        if (!with_bias) continue;
        CHECK(distance(dbias, differences(b, [&](const doubles& v) {
                           return loss(wide(x), wide(w), v);
                       })) < close);
    }
}

TEST_CASE("norms and their gradients are those of their definition") {
    constexpr std::size_t tokens = 7, width = 45;
    execution_context on;
    const precision how;
    layer_buffers buffers;
    const layer_context c{on, how, buffers};
    const std::vector<float> x = numbers(1, tokens * width), gain = numbers(2, width),
                             bias = numbers(3, width), dy = numbers(4, tokens * width);
    for (const bool rms : {false, true}) {
        const doubles b = rms ? doubles() : wide(bias);
        const norm_layer l{
            "n", tokens, width, norm_eps, rms, gain.data(), rms ? nullptr : bias.data()};
        norm_kept kept;
        std::vector<float> y(tokens * width), dx(y.size()), dgain(width), dbias(width);
        norm_forward(c, l, x.data(), y.data(), kept);
        CHECK(distance(y, norm(wide(x), wide(gain), b, tokens, width, rms)) < close);
        norm_backward(c, l, kept, dy.data(), dx.data(), dgain.data(), rms ? nullptr : dbias.data());
        const auto loss = [&](const doubles& vx, const doubles& vg, const doubles& vb) {
            return dot(norm(vx, vg, vb, tokens, width, rms), dy);
        };
        CHECK(distance(dx, differences(wide(x), [&](const doubles& v) {
                           return loss(v, wide(gain), b);
                       })) < close);
        CHECK(distance(dgain, differences(wide(gain), [&](const doubles& v) {
                           return loss(wide(x), v, b);
                       })) < close);
        if (rms) continue;
        CHECK(distance(dbias, differences(b, [&](const doubles& v) {
                           return loss(wide(x), wide(gain), v);
                       })) < close);
    }
}

TEST_CASE("activations and their gradients are those of their definition") {
    constexpr std::size_t tokens = 5, width = 29;
    execution_context on;
    const precision how;
    layer_buffers buffers;
    const layer_context c{on, how, buffers};
    for (const activation what :
         {activation::none, activation::relu, activation::gelu, activation::swiglu}) {
        const std::size_t inner = what == activation::swiglu ? 2 * width : width;
        const std::vector<float> u = numbers(1, tokens * inner, 2), dh = numbers(2, tokens * width);
        const auto of = [&](const doubles& v) {
            doubles h(tokens * width);
            for (std::size_t t = 0; t < tokens; ++t) {
                for (std::size_t i = 0; i < width; ++i) {
                    const double gate = inner > width ? v[t * inner + width + i] : 0;
                    h[t * width + i] = phi(what, v[t * inner + i], gate);
                }
            }
            return h;
        };
        std::vector<float> h(tokens * width), du(tokens * inner);
        activation_forward(c, what, tokens, width, u.data(), h.data());
        CHECK(distance(h, of(wide(u))) < close);
        activation_backward(c, what, tokens, width, u.data(), dh.data(), du.data());
        CHECK(distance(du, differences(wide(u), [&](const doubles& v) { return dot(of(v), dh); })) <
              close);
    }
}

TEST_CASE("losses and their gradients are those of their definition") {
    constexpr std::size_t tokens = 6, width = 31;
    execution_context on;
    const std::vector<float> y = numbers(1, tokens * width), target = numbers(2, tokens * width);
    const auto squared = [&](const doubles& v) {
        double sum = 0;
        for (std::size_t i = 0; i < v.size(); ++i) {
            sum += std::pow(v[i] - static_cast<double>(target[i]), 2);
        }
        return sum / static_cast<double>(v.size());
    };
    constexpr double t = 2.5;
    const auto log_softmax = [&](const doubles& v, std::size_t row, std::size_t i) {
        double sum = 0;
        for (std::size_t k = 0; k < width; ++k) sum += std::exp(v[row * width + k] / t);
        return v[row * width + i] / t - std::log(sum);
    };
    const auto divergence = [&](const doubles& v) {
        double sum = 0;
        for (std::size_t row = 0; row < tokens; ++row) {
            for (std::size_t i = 0; i < width; ++i) {
                const double p = log_softmax(wide(target), row, i);
                sum += std::exp(p) * (p - log_softmax(v, row, i));
            }
        }
        return t * t * sum / static_cast<double>(tokens);
    };
    std::vector<float> gradient(y.size());
    array_of<double> losses;
    const float mse =
        mean_squared_error(on, y.data(), target.data(), tokens, width, gradient.data(), losses);
    CHECK(std::abs(static_cast<double>(mse) - squared(wide(y))) < 1e-6 * squared(wide(y)));
    CHECK(distance(gradient, differences(wide(y), squared)) < close);
    const float kl = divergence_loss(on, y.data(), target.data(), tokens, width,
                                     static_cast<float>(t), gradient.data(), losses);
    CHECK(std::abs(static_cast<double>(kl) - divergence(wide(y))) < 1e-6 * divergence(wide(y)));
    CHECK(distance(gradient, differences(wide(y), divergence)) < close);
}

// A student in float64: the residual stream through every block.
doubles student_output(const student& net, const doubles& values, const doubles& x,
                       std::size_t tokens) {
    const student_shape& s = net.shape();
    const auto part = [&](std::size_t index) {
        const parameter& p = net.parameters().all()[index];
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(p.first);
        return doubles(first, first + static_cast<std::ptrdiff_t>(p.count));
    };
    doubles a = x;
    std::size_t at = 0;
    for (std::size_t i = 0; i < s.depth; ++i) {
        doubles z = a;
        if (s.norm == norm_kind::layer) {
            z = norm(a, part(at), part(at + 1), tokens, s.width, false);
            at += 2;
        } else if (s.norm == norm_kind::rms) {
            z = norm(a, part(at), {}, tokens, s.width, true);
            at += 1;
        }
        const doubles u = linear(z, part(at), {}, tokens, s.width, s.inner());
        doubles h(tokens * s.hidden());
        for (std::size_t t = 0; t < tokens; ++t) {
            for (std::size_t k = 0; k < s.hidden(); ++k) {
                const double gate = s.inner() > s.hidden() ? u[t * s.inner() + s.hidden() + k] : 0;
                h[t * s.hidden() + k] = phi(s.phi, u[t * s.inner() + k], gate);
            }
        }
        const doubles y = linear(h, part(at + 1), part(at + 2), tokens, s.hidden(), s.width);
        at += 3;
        for (std::size_t k = 0; k < a.size(); ++k) a[k] += y[k];
    }
    return a;
}

TEST_CASE("gradients of a whole student are those of its definition") {
    constexpr std::size_t tokens = 4;
    for (const norm_kind kind : {norm_kind::layer, norm_kind::rms, norm_kind::none}) {
        for (const activation what : {activation::gelu, activation::swiglu}) {
            execution_context on;
            student net({10, 2, what, kind});
            const precision how;
            const std::vector<float> values =
                initial_values(net.parameters(), start::pytorch, 0.5f, 1.5f, 3);
            const std::vector<float> x = numbers(1, tokens * 10), dy = numbers(2, tokens * 10);
            const float* const out = net.forward(on, how, values, x.data(), tokens, 0, 1);
            const std::vector<float> y(out, out + tokens * 10);
            CHECK(distance(y, student_output(net, wide(values), wide(x), tokens)) < close);
            std::vector<float> gradient = dy, gradients(values.size());
            net.backward(on, how, values, gradient.data(), gradients);
            CHECK(distance(gradients, differences(wide(values), [&](const doubles& v) {
                               return dot(student_output(net, v, wide(x), tokens), dy);
                           })) < 5 * close);
        }
    }
}

TEST_CASE("Adam and SGD move parameters as they are defined") {
    execution_context on;
    parameter_list list;
    list.add("w", parameter_kind::weight, {40});
    list.add("b", parameter_kind::norm_bias, {5});
    const std::vector<float> before = numbers(1, 45);
    std::vector<float> values = before;
    doubles exact = wide(before), m(45), v(45);
    moments state;
    for (std::uint64_t t = 1; t <= 20; ++t) {
        const std::vector<float> g = numbers(t + 1, 45);
        update(on, optimizer::adam, list, {t, 0}, 0.01, g, values, state);
        for (std::size_t i = 0; i < 40; ++i) {
            const double gi = static_cast<double>(g[i]), n = static_cast<double>(t);
            m[i] = 0.9 * m[i] + 0.1 * gi;
            v[i] = 0.999 * v[i] + 0.001 * gi * gi;
            exact[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, n))) /
                        (std::sqrt(v[i] / (1 - std::pow(0.999, n))) + 1e-8);
        }
    }
    CHECK(distance(values, exact) < 1e-5);
    CHECK(values[44] == before[44]);  // a bias that does not train
    // The first update of a bias that trains from step 21 on is as large as the rate.
    const std::vector<float> g = numbers(21, 45);
    update(on, optimizer::adam, list, {21, 1}, 0.01, g, values, state);
    CHECK(std::abs(values[44] - (before[44] - std::copysign(0.01f, g[44]))) < 1e-6f);
    values = before;
    update(on, optimizer::sgd, list, {1, 1}, 0.5, numbers(2, 45), values, state);
    CHECK(values[44] == std::fma(-0.5f, numbers(2, 45)[44], before[44]));
}

}  // namespace
}  // namespace mx::lab
