// SPDX-License-Identifier: Apache-2.0
// Draws against their laws. Bounds are five standard errors of the statistic at this sample size:
// a correct generator with another seed would miss one of them with probability 6e-7.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/generators/tensor_source.hpp"
#include "tests/catch.hpp"

using namespace mx::synth;

namespace {

constexpr std::size_t draws = std::size_t{1} << 20;
constexpr double n = static_cast<double>(draws);

tensor_spec plain(law id, const std::string& name = "plain") {
    tensor_spec spec;
    spec.name = name;
    spec.type = mx::tensor::dtype::f32;
    spec.shape = {draws / 1024, 1024};
    spec.draw = id;
    return spec;
}

std::vector<float> values_of(const tensor_spec& spec, std::uint64_t seed) {
    const tensor_source source(spec, seed);
    std::vector<float> out(static_cast<std::size_t>(source.elements()));
    source.fill_f32(0, out);
    return out;
}

double moment(const std::vector<float>& values, int power) {
    double sum = 0.0;
    for (const double x : values) sum += std::pow(x, power);
    return sum / n;
}

}  // namespace

TEST_CASE("synth: moments of the normal law", "[synth]") {
    const std::vector<float> x = values_of(plain(law::normal), 7);
    CHECK(std::abs(moment(x, 1)) < 5.0 / std::sqrt(n));
    CHECK(std::abs(moment(x, 2) - 1.0) < 5.0 * std::sqrt(2.0 / n));
    CHECK(std::abs(moment(x, 3)) < 5.0 * std::sqrt(15.0 / n));
    CHECK(std::abs(moment(x, 4) - 3.0) < 5.0 * std::sqrt(96.0 / n));
    CHECK(std::abs(moment(x, 6) - 15.0) < 5.0 * std::sqrt((10395.0 - 225.0) / n));
}

TEST_CASE("synth: variance and kurtosis of a Student law", "[synth]") {
    // Central moments of t with 14 degrees of freedom at unit variance: m4 = 3.6, m6 = 27, m8 =
    // 378.
    const std::vector<float> x = values_of(plain(law::student_t14), 7);
    CHECK(std::abs(moment(x, 2) - 1.0) < 5.0 * std::sqrt((3.6 - 1.0) / n));
    const double kurtosis = moment(x, 4) / (moment(x, 2) * moment(x, 2));
    const double spread = 378.0 - 4.0 * 3.6 * 27.0 - 3.6 * 3.6 + 4.0 * 3.6 * 3.6 * 3.6;
    CHECK(std::abs(kurtosis - 3.6) < 5.0 * std::sqrt(spread / n));
}

TEST_CASE("synth: log-normal magnitudes", "[synth]") {
    std::vector<float> x = values_of(plain(law::log_normal2), 7);
    for (float& value : x) value = std::log(std::abs(value));
    CHECK(std::abs(moment(x, 1)) < 5.0 * 2.0 / std::sqrt(n));
    CHECK(std::abs(moment(x, 2) - 4.0) < 5.0 * 4.0 * std::sqrt(2.0 / n));
}

TEST_CASE("synth: shares beyond every law's quantiles are binomial", "[synth]") {
    for (const law_row& row : laws) {
        const std::vector<float> x = values_of(plain(row.id), 11);
        std::size_t negative = 0;
        for (const float value : x) negative += std::signbit(value) ? 1 : 0;
        INFO(row.name);
        CHECK(std::abs(static_cast<double>(negative) - n / 2) < 5.0 * std::sqrt(n / 4));
        for (const double p : {0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4, 1e-5}) {
            const double high = magnitude_quantile(row, tail::upper, p);
            const double low = magnitude_quantile(row, tail::lower, p);
            std::size_t above = 0;
            std::size_t below = 0;
            for (const float value : x) {
                above += std::abs(value) > high ? 1 : 0;
                below += std::abs(value) < low ? 1 : 0;
            }
            const double allowed = 5.0 * std::sqrt(n * p * (1.0 - p)) + 1.0;
            CHECK(std::abs(static_cast<double>(above) - n * p) < allowed);
            CHECK(std::abs(static_cast<double>(below) - n * p) < allowed);
        }
    }
}

TEST_CASE("synth: neighbours, tensors and seeds are uncorrelated", "[synth]") {
    const std::vector<float> x = values_of(plain(law::normal), 1);
    const std::vector<float> other_seed = values_of(plain(law::normal), 2);
    const std::vector<float> other_name = values_of(plain(law::normal, "plain2"), 1);
    const double allowed = 5.0 / std::sqrt(n);
    for (const std::size_t lag : {1u, 2u, 3u, 4u, 32u, 1024u}) {
        double sum = 0.0;
        for (std::size_t i = lag; i < draws; ++i) sum += double{x[i]} * double{x[i - lag]};
        CHECK(std::abs(sum / n) < allowed);
    }
    CHECK(std::abs(std::inner_product(x.begin(), x.end(), other_seed.begin(), 0.0) / n) < allowed);
    CHECK(std::abs(std::inner_product(x.begin(), x.end(), other_name.begin(), 0.0) / n) < allowed);
}
