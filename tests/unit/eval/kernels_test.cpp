// SPDX-License-Identifier: Apache-2.0
// The sums over the vocabulary do not depend on how it is cut, beyond rounding.
#include "libmx/eval/simd/kernels.hpp"

#include <cmath>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/lab/simd/kernels.hpp"
#include "tests/catch.hpp"

namespace mx::eval::simd {
namespace {

struct figures {
    double log_p = 0, log_q = 0, divergence = 0, entropy = 0;
    std::size_t top = 0;
};

figures figures_of(const kernels_of<double>& k, const std::vector<double>& p,
                   const std::vector<double>& q, std::size_t piece) {
    logit_sums of_p, of_q;
    double crossed = 0;
    std::vector<double> e(piece), other(piece);
    for (std::size_t first = 0; first < p.size(); first += piece) {
        const std::size_t count = std::min(piece, p.size() - first);
        const double before = of_p.sum == 0 ? INFINITY : of_p.largest;
        k.sum_logits(p.data() + first, count, first, of_p, e.data());
        k.sum_logits(q.data() + first, count, first, of_q, other.data());
        k.add_crossed(e.data(), p.data() + first, q.data() + first, count, of_p, before, crossed);
    }
    figures f;
    f.log_p = of_p.largest + logarithm(of_p.sum);
    f.log_q = of_q.largest + logarithm(of_q.sum);
    f.divergence = crossed / of_p.sum - (f.log_p - f.log_q);
    f.entropy = f.log_p - of_p.weighted / of_p.sum;
    f.top = of_p.top;
    return f;
}

}  // namespace

TEST_CASE("sums over parts of the vocabulary are those of the whole") {
    // Logits that rise, so that every part has a new maximum, and that do not.
    const double slope = GENERATE(-0.01, 0.0, 0.01);
    std::vector<double> p(1000), q(1000);
    for (std::size_t i = 0; i < p.size(); ++i) {
        const auto draw = [&](std::uint64_t which) {
            return static_cast<double>(base::random_u32({1, which}, i)) * 0x1p-30 - 2;
        };
        p[i] = 3 * draw(1) + slope * static_cast<double>(i);
        q[i] = p[i] + 0.3 * draw(2);
    }
    // From the definitions.
    double sum_p = 0, sum_q = 0, divergence = 0, entropy = 0;
    std::size_t top = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        sum_p += std::exp(p[i]);
        sum_q += std::exp(q[i]);
        if (p[i] > p[top]) top = i;
    }
    for (std::size_t i = 0; i < p.size(); ++i) {
        const double log_p = p[i] - std::log(sum_p), log_q = q[i] - std::log(sum_q);
        divergence += std::exp(log_p) * (log_p - log_q);
        entropy -= std::exp(log_p) * log_p;
    }
    for (const lab::simd::kernels* set : lab::simd::available()) {
        CAPTURE(set->name, slope);
        const kernels_of<double>& k = of<double>(named(set->name));
        for (const std::size_t piece : {1000u, 999u, 300u, 17u, 1u}) {
            const figures f = figures_of(k, p, q, piece);
            CHECK(std::abs(f.log_p - std::log(sum_p)) < 1e-12);
            CHECK(std::abs(f.log_q - std::log(sum_q)) < 1e-12);
            CHECK(std::abs(f.divergence - divergence) < 1e-12);
            CHECK(std::abs(f.entropy - entropy) < 1e-11);
            CHECK(f.top == top);
        }
    }
}

TEST_CASE("exponential, logarithm and circle functions are within a few units of the last place") {
    for (int i = -7000; i <= 7000; ++i) {
        const double x = 0.1 * i;
        CHECK(std::abs(exponential(x) / std::exp(x) - 1) < 4e-16);
        const double y = std::exp(0.01 * i);
        CHECK(std::abs(logarithm(y) - std::log(y)) <= 4e-16 * std::max(1.0, std::abs(std::log(y))));
    }
    // i / 1000 and the angle are rounded themselves, by up to 1e-15 in radians.
    for (int i = 0; i < 1000; ++i) {
        const double turn = 6.283185307179586476925 * i / 1000;
        CHECK(std::abs(cosine_of_turns(i / 1000.0) - std::cos(turn)) < 2e-15);
        CHECK(std::abs(sine_of_turns(i / 1000.0) - std::sin(turn)) < 2e-15);
    }
}

}  // namespace mx::eval::simd
