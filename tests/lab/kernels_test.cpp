// SPDX-License-Identifier: Apache-2.0
// The polynomials against the C library in float64, and every instruction set against the portable
// kernels, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/lab/simd/kernels.hpp"
#include "tests/catch.hpp"

namespace mx::lab {
namespace {

using simd::activation;
using simd::rounding;

// Float32 numbers over the whole range of magnitudes, both signs, in a fixed order.
std::vector<float> spread(std::size_t count, float least, float most) {
    std::vector<float> x;
    for (std::uint64_t i = 0; x.size() < count; ++i) {
        const std::uint32_t u = base::random_u32({7, 1}, i);
        const float v = base::float_from_bits(u);
        if (!(std::abs(v) <= most) || std::abs(v) < least) continue;
        x.push_back(v);
    }
    return x;
}

std::vector<float> normals(std::uint64_t tensor, std::size_t count) {
    std::vector<float> x(count);
    simd::scalar_kernels.normal({1, tensor}, 0, count, x.data());
    return x;
}

// |y - exact| in units of the last place of the float32 nearest to `exact`.
double error_in_ulps(float y, double exact) {
    const float nearest = static_cast<float>(exact);
    const double ulp = std::max(
        static_cast<double>(std::nextafter(std::abs(nearest), INFINITY) - std::abs(nearest)),
        0x1p-149);
    return std::abs(static_cast<double>(y) - exact) / ulp;
}

double worst_error(void (*f)(const float*, std::size_t, float*), double (*exact)(double),
                   const std::vector<float>& x) {
    std::vector<float> y(x.size());
    f(x.data(), x.size(), y.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, error_in_ulps(y[i], exact(static_cast<double>(x[i]))));
    }
    return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("exp, log, erf and tanh are within 0.501 units in the last place") {
    const simd::kernels& k = simd::scalar_kernels;
    std::vector<float> dense;
    for (int i = -450000; i <= 450000; ++i) dense.push_back(static_cast<float>(i) * 1e-5f);
    const std::vector<float> wide = spread(200000, 0, 80.0f);
    CHECK(worst_error(k.exp, std::exp, dense) < 0.501);
    CHECK(worst_error(k.exp, std::exp, wide) < 0.501);
    CHECK(worst_error(k.erf, std::erf, dense) < 0.501);
    CHECK(worst_error(k.erf, std::erf, wide) < 0.501);
    CHECK(worst_error(k.tanh, std::tanh, dense) < 0.501);
    CHECK(worst_error(k.tanh, std::tanh, wide) < 0.501);
    std::vector<float> positive = spread(200000, 0x1p-149f, 3e38f);
    for (float& x : positive) x = std::abs(x);
    for (int i = 1; i <= 300000; ++i) positive.push_back(static_cast<float>(i) * 1e-5f);
    CHECK(worst_error(k.log, std::log, positive) < 0.501);
}

TEST_CASE("exp, log, erf and tanh of NaN, Inf and zero") {
    const simd::kernels& k = simd::scalar_kernels;
    const float inf = std::numeric_limits<float>::infinity();
    const auto of = [](void (*f)(const float*, std::size_t, float*), float x) {
        float y = 0;
        f(&x, 1, &y);
        return y;
    };
    for (const auto f : {k.exp, k.log, k.erf, k.tanh}) CHECK(std::isnan(of(f, std::nanf(""))));
    CHECK(of(k.exp, inf) == inf);
    CHECK(of(k.exp, -inf) == 0.0f);
    CHECK(of(k.exp, 89.0f) == inf);
    CHECK(of(k.log, inf) == inf);
    CHECK(of(k.log, 0.0f) == -inf);
    CHECK(std::isnan(of(k.log, -1.0f)));
    CHECK(of(k.erf, inf) == 1.0f);
    CHECK(of(k.erf, -inf) == -1.0f);
    CHECK(of(k.tanh, -inf) == -1.0f);
    CHECK(std::signbit(of(k.erf, -0.0f)));
    CHECK(std::signbit(of(k.tanh, -0.0f)));
}

TEST_CASE("normal numbers depend on their place alone and have the moments of a normal") {
    constexpr std::size_t count = 1 << 20;
    const std::vector<float> all = normals(5, count);
    std::vector<float> part(1001);
    simd::scalar_kernels.normal({1, 5}, 777, part.size(), part.data());
    CHECK(std::equal(part.begin(), part.end(), all.begin() + 777));
    double moment[5] = {};
    for (const float x : all) {
        double power = 1;
        for (double& m : moment) {
            m += power / count;
            power *= static_cast<double>(x);
        }
    }
    // Three standard errors of each moment.
    CHECK(std::abs(moment[1]) < 3e-3);
    CHECK(std::abs(moment[2] - 1) < 3 * std::sqrt(2.0 / count));
    CHECK(std::abs(moment[3]) < 3 * std::sqrt(15.0 / count));
    CHECK(std::abs(moment[4] - 3) < 3 * std::sqrt(96.0 / count));
}

// Everything that a table computes from the same inputs.
std::vector<float> everything(const simd::kernels& k) {
    constexpr std::size_t rows = 5, width = 43, count = rows * width;
    std::vector<float> out;
    const auto keep = [&](const std::vector<float>& x) {
        out.insert(out.end(), x.begin(), x.end());
    };
    const auto keep_double = [&](double x) {
        float halves[2];
        std::memcpy(halves, &x, sizeof x);
        out.insert(out.end(), halves, halves + 2);
    };
    const std::vector<float> x = normals(1, count), u = normals(2, count), g = normals(3, count);
    std::vector<float> y(count), z(count), v(rows);
    std::vector<float> wide = spread(count, 0, 3e38f);
    for (const auto f : {k.exp, k.erf, k.tanh}) {
        f(wide.data(), count, y.data());
        keep(y);
    }
    for (float& w : wide) w = std::abs(w);
    k.log(wide.data(), count, y.data());
    keep(y);
    k.normal({3, 9}, 5, count, y.data());
    keep(y);
    for (const rounding how : {rounding::none, rounding::bf16, rounding::bf16_even}) {
        k.round(how, x.data(), count, y.data());
        keep(y);
        for (const activation what :
             {activation::none, activation::relu, activation::gelu, activation::swiglu}) {
            k.activate(what, how, x.data(), u.data(), count, y.data());
            keep(y);
            z.assign(count, 0);
            k.activate_back(what, how, x.data(), u.data(), g.data(), count, y.data(), z.data());
            keep(y);
            keep(z);
        }
        k.stepwise_gelu(how, wide.data(), count, y.data());
        keep(y);
        k.stepwise_gelu(how, x.data(), count, y.data());
        keep(y);
        y = x;
        k.add_bias(how, g.data(), rows, width, y.data());
        keep(y);
        for (const bool rms : {false, true}) {
            std::vector<float> n(count);
            simd::norm_rows of{rows, width, 1e-5f, rms, how, how, u.data(), g.data()};
            if (rms) {
                of.statistics = rounding::none;
                of.bias = nullptr;
            }
            k.norm(of, x.data(), y.data(), n.data(), v.data());
            keep(y);
            keep(n);
            keep(v);
            k.norm_back(of, g.data(), n.data(), v.data(), y.data());
            keep(y);
        }
        std::vector<float> sums(width);
        k.column_sums(how, x.data(), u.data(), rows, width, 3, width, sums.data());
        keep(sums);
        k.column_sums(how, x.data(), nullptr, rows, width, 0, width, sums.data());
        keep(sums);
    }
    k.add(x.data(), u.data(), count, y.data());
    keep(y);
    keep_double(k.squared_error(x.data(), u.data(), count, 0.25f, y.data()));
    keep(y);
    keep_double(k.divergence(x.data(), u.data(), count, 2.0f, 0.25f, y.data()));
    keep(y);
    keep_double(k.dot(x.data(), x.data(), count));
    keep_double(k.dot(x.data(), g.data(), count));
    std::vector<float> p = x, m = u, second = g;
    for (float& s : second) s = std::abs(s);
    k.adam({0.1f, 0.999f, 0.001f, 0.3f, 1e-8f, -0.01f}, g.data(), count, p.data(), m.data(),
           second.data());
    keep(p);
    keep(m);
    keep(second);
    k.sgd(0.1f, g.data(), count, p.data());
    keep(p);
    return out;
}

TEST_CASE("every instruction set gives the bits of the portable kernels") {
    const std::vector<float> expected = everything(simd::scalar_kernels);
    for (const simd::kernels* k : simd::available()) {
        INFO(k->name);
        CHECK(same_bits(everything(*k), expected));
    }
}

}  // namespace
}  // namespace mx::lab
