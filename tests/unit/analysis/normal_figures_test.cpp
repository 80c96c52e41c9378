// SPDX-License-Identifier: Apache-2.0
// Figures on standard normal numbers that studies of scale rules quote or that follow from their
// definitions: block of 32, rtne.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/metrics/row.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx;

constexpr std::size_t count = std::size_t{1} << 22;

// Box and Muller's pairs: the same numbers with every standard library, up to the last bits of
// its logarithm.
std::vector<float> standard_normal() {
    constexpr double tau = 6.283185307179586;
    std::mt19937_64 bits(7);
    const auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; };
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; i += 2) {
        const double radius = std::sqrt(-2 * std::log(uniform()));
        const double angle = tau * uniform();
        x[i] = static_cast<float>(radius * std::cos(angle));
        x[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
    return x;
}

std::vector<analysis::matrix_totals> measure(const std::vector<std::string>& spellings) {
    const std::vector<float> x = standard_normal();
    std::vector<codec::recipe> recipes;
    for (const std::string& s : spellings) recipes.push_back(codec::parse_recipe(s));
    analysis::matrix m;
    m.data = reinterpret_cast<const std::byte*>(x.data());
    m.rows = count / 4096;
    m.cols = 4096;
    m.name = "normal";
    return analysis::analyze_matrix(m, recipes, false, {});
}

TEST_CASE("R-MSE of E2M1 on standard normal numbers by scale rule") {
    const auto totals =
        measure({"mxfp4:scale=floor", "mxfp4:scale=ceil", "mxfp4:scale=even", "mxfp4:scale=rceil"});
    const double expected[] = {0.1150, 0.1441, 0.1119, 0.1154};
    for (std::size_t i = 0; i < totals.size(); ++i) {
        CAPTURE(i);
        // A sample of this size deviates by 1e-4; the rules differ by more than this margin.
        CHECK(metrics::row_of(totals[i].totals).rmse == Approx(expected[i]).margin(0.0002));
    }
}

// P(|X| < m) of a standard normal X.
double within(double m) { return std::erf(m / std::sqrt(2.0)); }

// The share of elements beyond `from` * 2^e in blocks of 32 with a maximum below `to` * 2^e, in any
// binade: the elements that overflow if block maxima between the two keep the smaller scale.
double expected_overflow(double from, double to) {
    double share = 0;
    for (int e = -12; e < 6; ++e) {
        const double low = within(std::ldexp(from, e));
        const double high = within(std::ldexp(to, e));
        share += (high - low) * std::pow(high, 31);
    }
    return share;
}

TEST_CASE("overflow under even on standard normal numbers") {
    const auto totals = measure({"mxfp4:scale=even", "mxfp4_e3m0:scale=even"});
    const double e2m1 = expected_overflow(1.5, 1.75);
    const double e3m0 = expected_overflow(1.0, 1.5);
    CHECK(e2m1 == Approx(0.0062).margin(0.0001));
    CHECK(e3m0 == Approx(0.0416).margin(0.0001));
    CHECK(metrics::row_of(totals[0].totals).overflow_rate == Approx(e2m1).epsilon(0.03));
    CHECK(metrics::row_of(totals[1].totals).overflow_rate == Approx(e3m0).epsilon(0.01));
}

}  // namespace
