// SPDX-License-Identifier: Apache-2.0
// Intervals of float32 sums: no order leaves them, and some order comes near their ends.
#include "libmx/gemm/sum_interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.hpp"

namespace {

using namespace mx::gemm;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Adds two floats to nearest, or to a neighbour by a coin. Float64 holds the sums of the tests'
// terms exactly.
struct adder {
    std::mt19937_64& random;
    bool faithful;
    float operator()(double exact) {
        const auto nearest = static_cast<float>(exact);
        if (!faithful || static_cast<double>(nearest) == exact) return nearest;
        const float other = std::nextafter(
            nearest,
            static_cast<float>(exact > static_cast<double>(nearest) ? infinity : -infinity));
        return (random() & 1u) != 0 ? nearest : other;
    }
};

// A sum in a random order: along a chain with fused multiply-adds (each term in full precision), or
// over a random tree of rounded terms.
float random_sum(std::vector<double> terms, adder add) {
    std::shuffle(terms.begin(), terms.end(), add.random);
    if ((add.random() & 1u) != 0) {
        float sum = 0;
        for (const double x : terms) sum = add(static_cast<double>(sum) + x);
        return sum;
    }
    std::vector<float> nodes;
    for (const double x : terms) nodes.push_back(add(x));
    while (nodes.size() > 1) {
        const std::size_t i = add.random() % (nodes.size() - 1);
        nodes[i] = add(static_cast<double>(nodes[i]) + static_cast<double>(nodes.back()));
        nodes.pop_back();
    }
    return nodes.front();
}

// A chain that takes the term whose addition errs most in the direction of `sign`, the terms of one
// sign before the others.
double adversarial_sum(const std::vector<double>& terms, double sign, bool positive_first) {
    float sum = 0;
    for (const bool positive : {positive_first, !positive_first}) {
        std::vector<double> left;
        for (const double x : terms) {
            if ((x > 0) == positive) left.push_back(x);
        }
        while (!left.empty()) {
            std::size_t best = 0;
            double most = -infinity;
            for (std::size_t i = 0; i < left.size(); ++i) {
                const double exact = static_cast<double>(sum) + left[i];
                const double error =
                    sign * (static_cast<double>(static_cast<float>(exact)) - exact);
                if (error <= most) continue;
                most = error;
                best = i;
            }
            sum = static_cast<float>(static_cast<double>(sum) + left[best]);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
        }
    }
    return static_cast<double>(sum);
}

// Products of two significands of `bits` bits, over a few powers of two.
std::vector<double> products(std::mt19937_64& random, std::size_t count, int bits, bool mixed) {
    std::vector<double> terms;
    const auto significand = [&] {
        return static_cast<double>(random() % (std::uint64_t{1} << bits) + 1);
    };
    for (std::size_t i = 0; i < count; ++i) {
        const double x =
            std::ldexp(significand() * significand(), static_cast<int>(random() % 6) - 2 * bits);
        terms.push_back(mixed && (random() & 1u) != 0 ? -x : x);
    }
    return terms;
}

}  // namespace

TEST_CASE("no order of a float32 sum leaves its interval: 10^6 orders", "[gemm]") {
    std::mt19937_64 random(1);
    std::size_t outside = 0, orders = 0;
    for (int set = 0; set < 500; ++set) {
        const bool faithful = set % 2 != 0;
        const int bits = set % 5 < 3 ? 4 + set % 5 * 4 : 14;  // 14: products that float32 rounds
        const auto terms = products(random, 2 + random() % 40, bits, set % 3 != 0);
        const sum_interval r = interval_of_sum(terms, {faithful, 0});
        REQUIRE_FALSE(r.unbounded);
        for (int i = 0; i < 2000; ++i, ++orders) {
            const float sum = random_sum(terms, {random, faithful});
            outside += r.contains(static_cast<double>(sum)) ? 0 : 1;
        }
    }
    CHECK(orders == 1000000);
    CHECK(outside == 0);
}

TEST_CASE("some order uses an eighth of the interval of a float32 sum", "[gemm]") {
    std::mt19937_64 random(2);
    double least_used = 1, most_used = 0;
    for (int set = 0; set < 200; ++set) {
        const auto terms = products(random, 32 + random() % 480, 12, set % 2 != 0);
        const sum_interval r = interval_of_sum(terms, {});
        double used = 0;
        for (const double sign : {-1.0, 1.0}) {
            for (const bool positive_first : {false, true}) {
                const double sum = adversarial_sum(terms, sign, positive_first);
                REQUIRE(r.contains(sum));
                used = std::max(used, std::abs(sum - r.exact) / r.radius());
            }
        }
        least_used = std::min(least_used, used);
        most_used = std::max(most_used, used);
    }
    INFO("shares of the bound that were used: " << least_used << " to " << most_used);
    CHECK(least_used > 1.0 / 8);
    CHECK(most_used <= 1);
}

TEST_CASE("sums of multiples of one step that fit 24 bits have one result", "[gemm]") {
    // Products of e2m1 under one scale: multiples of 1/4 up to 36.
    std::vector<double> terms(4096, 36.0);
    for (std::size_t i = 0; i < terms.size(); i += 2) terms[i] = -0.25;
    CHECK(interval_of_sum(terms, {}).radius() == 0);
    CHECK(interval_of_sum(terms, {true, 0}).radius() == 0);
    // One step further down, the sum of the positive terms no longer fits.
    terms[0] = 0x1p-8;
    CHECK(interval_of_sum(terms, {}).radius() > 0);
    // Rounding by scales makes even two small terms inexact.
    const double two[] = {1.0, 0.5};
    CHECK(interval_of_sum(two, {}).radius() == 0);
    CHECK(interval_of_sum(two, {false, 1}).radius() > 0);
    CHECK(interval_of_sum(two, {false, 1}).radius() < 0x1p-21);
    // 2^24 and 1: to nearest one rounding of half a step of 2^24; to a neighbour, a whole step.
    const double tie[] = {0x1p24, 1.0};
    CHECK(interval_of_sum(tie, {}).radius() == Approx(1).epsilon(1e-5));
    CHECK(interval_of_sum(tie, {true, 0}).radius() == Approx(2).epsilon(1e-5));
    CHECK(interval_of_sum({}, {}).contains(-0.0));
}

TEST_CASE("products below the subnormals may round to zero or to the least of them", "[gemm]") {
    const double tiny[] = {0x1p-151};
    const sum_interval r = interval_of_sum(tiny, {});
    CHECK(r.contains(0));
    CHECK(r.contains(0x1p-149));
    CHECK_FALSE(r.contains(0x1p-147));
}

TEST_CASE("intervals of sums with NaN, Inf and overflow", "[gemm]") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double up[] = {1, infinity}, both[] = {infinity, -infinity}, none[] = {nan, 1};
    CHECK(interval_of_sum(up, {}).contains(infinity));
    CHECK_FALSE(interval_of_sum(up, {}).contains(1));
    CHECK_FALSE(interval_of_sum(up, {}).contains(nan));
    CHECK(interval_of_sum(both, {}).contains(nan));
    CHECK_FALSE(interval_of_sum(both, {}).contains(infinity));
    CHECK(interval_of_sum(none, {}).contains(nan));
    CHECK_FALSE(interval_of_sum(none, {}).contains(1));
    // In some order these overflow, so that Inf, NaN and every number conform.
    const double large[] = {0x1p127, 0x1p127, -0x1p127};
    for (const double x : {0.0, infinity, nan}) CHECK(interval_of_sum(large, {}).contains(x));
    const double finite[] = {1, 2};
    CHECK_FALSE(interval_of_sum(finite, {}).contains(nan));
    CHECK_FALSE(interval_of_sum(finite, {}).contains(infinity));
}
