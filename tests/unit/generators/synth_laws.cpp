// SPDX-License-Identifier: Apache-2.0
// The distributions of the synthetic generator against libm, published tables and the quantiles
// they are tabulated from.
#include <cmath>
#include <cstdint>
#include <random>

#include "datasets/generators/exact_math.hpp"
#include "datasets/generators/laws.hpp"
#include "datasets/generators/quantile_table.hpp"
#include "tests/catch.hpp"

using namespace mx::synth;

namespace {

double relative_error(double value, double expected) { return std::abs(value / expected - 1.0); }

/// Words with probabilities that cover all octaves evenly.
std::uint32_t spread_word(std::mt19937& random) {
    const auto low = static_cast<std::uint32_t>(random()) & 0x7fffffffu;
    return (static_cast<std::uint32_t>(random()) & 0x80000001u) | (low >> (random() % 31));
}

double probability(std::uint32_t word) { return ((word & 0x7fffffffu) | 1u) * 0x1p-32; }

tail end_of(std::uint32_t word) { return (word >> 31) == 0 ? tail::upper : tail::lower; }

}  // namespace

TEST_CASE("synth: own exponential and logarithm keep their stated accuracy", "[synth]") {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> exponents(-700.0, 700.0);
    double worst_exp = 0.0;
    double worst_log = 0.0;
    for (int i = 0; i < 200000; ++i) {
        const double x = exponents(random);
        const double y = std::exp(x);
        worst_exp = std::max(worst_exp, relative_error(exact_exp(x), y));
        for (const double z : {y, 1.0 + x / 1400.0}) {
            const double expected = std::log(z);
            const double allowed = 2e-16 + 4e-16 * std::abs(expected);
            worst_log = std::max(worst_log, std::abs(exact_log(z) - expected) / allowed);
        }
    }
    CHECK(worst_exp < 1e-15);
    CHECK(worst_log <= 1.0);
    CHECK(exact_log(1.0) == 0.0);
    CHECK(exact_exp(0.0) == 1.0);
}

TEST_CASE("synth: normal quantiles invert the error function", "[synth]") {
    const law_row& row = row_of(law::normal);
    // NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter): any probabilities will do
    for (double p = 0.5; p > 0x1p-40; p *= 0.83) {
        const double upper = magnitude_quantile(row, tail::upper, p);
        const double lower = magnitude_quantile(row, tail::lower, p);
        CHECK(relative_error(std::erfc(upper / std::sqrt(2.0)), p) < 4e-11);
        CHECK(relative_error(std::erf(lower / std::sqrt(2.0)), p) < 1e-12);
    }
    CHECK(relative_error(magnitude_quantile(row, tail::upper, 0.05), 1.959963984540054) < 1e-12);
    CHECK(relative_error(magnitude_quantile(row, tail::upper, 0.01), 2.575829303548901) < 1e-12);
}

TEST_CASE("synth: Student quantiles agree with published tables", "[synth]") {
    struct entry {
        law id;
        double two_sided;
        double quantile;
    };
    // Two-sided critical values of t, as printed in statistical tables.
    const entry table[] = {
        {law::student_t4, 0.5, 0.741},    {law::student_t4, 0.1, 2.132},
        {law::student_t4, 0.05, 2.776},   {law::student_t4, 0.01, 4.604},
        {law::student_t4, 0.001, 8.610},  {law::student_t6, 0.5, 0.718},
        {law::student_t6, 0.1, 1.943},    {law::student_t6, 0.05, 2.447},
        {law::student_t6, 0.01, 3.707},   {law::student_t6, 0.001, 5.959},
        {law::student_t14, 0.5, 0.692},   {law::student_t14, 0.1, 1.761},
        {law::student_t14, 0.05, 2.145},  {law::student_t14, 0.01, 2.977},
        {law::student_t14, 0.001, 4.140},
    };
    for (const entry& e : table) {
        const law_row& row = row_of(e.id);
        const double to_unit_variance = std::sqrt((row.parameter - 2.0) / row.parameter);
        const double t = magnitude_quantile(row, tail::upper, e.two_sided) / to_unit_variance;
        CHECK(std::abs(t - e.quantile) < 0.0005001);
    }
    // Far tail: P(|T| > t) of four degrees of freedom tends to 6 / t^4.
    const double far =
        magnitude_quantile(row_of(law::student_t4), tail::upper, 1e-11) * std::sqrt(2.0);
    CHECK(relative_error(6.0 / std::pow(far, 4.0), 1e-11) < 1e-4);
}

TEST_CASE("synth: both ends of every law meet in the middle", "[synth]") {
    for (const law_row& row : laws) {
        const double upper = magnitude_quantile(row, tail::upper, 0.5);
        const double lower = magnitude_quantile(row, tail::lower, 0.5);
        CHECK(relative_error(upper, lower) < 1e-12);
    }
}

TEST_CASE("synth: tables follow the exact quantiles", "[synth]") {
    for (const law_row& row : laws) {
        std::mt19937 random(2);
        const quantile_table& table = table_of(row.id);
        double worst = 0.0;
        for (int i = 0; i < 20000; ++i) {
            const std::uint32_t word = spread_word(random);
            const double exact = magnitude_quantile(row, end_of(word), probability(word));
            const float value = table(word);
            worst = std::max(worst, relative_error(std::abs(value), exact));
            REQUIRE(std::signbit(value) == ((word & 1u) != 0));
        }
        INFO(row.name);
        CHECK(worst < 4e-6);
    }
}

TEST_CASE("synth: the words at the edges of the table", "[synth]") {
    const quantile_table& normal = table_of(law::normal);
    CHECK(normal(0u) == Approx(6.3378).epsilon(1e-4));  // exceeded with probability 2^-32
    CHECK(normal(1u) == -normal(0u));
    CHECK(normal(0x80000000u) == Approx(0x1p-32 * std::sqrt(std::acos(-1.0) / 2.0)).epsilon(1e-5));
    // The median of the magnitude, from both ends.
    CHECK(normal(0x7ffffffeu) == Approx(0.674489750).epsilon(1e-6));
    CHECK(normal(0xfffffffeu) == Approx(0.674489750).epsilon(1e-6));
}
