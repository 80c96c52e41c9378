// SPDX-License-Identifier: Apache-2.0
// A statistical test that stochastic rounding with the recipes' generator is unbiased. The test is
// sensitive enough: FBGEMM's form fails it.
//
// Under the hypothesis that E[q] = y the sum of q over n draws, less n y and divided by its
// standard deviation, is nearly normal. The bound of 5.5 standard deviations is then exceeded by
// chance with probability 3.8e-8 per input; over the fewer than 1,100 inputs here a false alarm has
// a probability below 5e-5. The seeds are fixed, so the outcome is always the same.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/encode.hpp"
#include "tests/catch.hpp"

namespace {

using mx::base::bits_of;
using mx::format::rounding;

constexpr int draws = 4096;
constexpr double bound = 5.5;

// y strictly between neighbours of the format, on both sides of zero, at fractions that k bits
// represent exactly: for others, the expectation is by design up to 2^-k of the gap too small.
struct point {
    float y;
    double low, high;  ///< its neighbours
};

std::vector<point> points_of(const mx::format::element_format& f) {
    std::vector<point> out;
    for (std::uint32_t code = 0; code < f.max_code(); ++code) {
        const double low = mx::format::decode(f, code);
        const double high = mx::format::decode(f, code + 1);
        const double fraction = static_cast<double>(1 + 37 * code % 255) / 256;
        const double y = low + fraction * (high - low);
        out.push_back({static_cast<float>(y), low, high});
        if (f.has_sign) out.push_back({static_cast<float>(-y), -high, -low});
        if (out.size() >= 64) break;
    }
    return out;
}

// The distance of the mean of `value(draw)` over the draws from y, in standard deviations.
template <typename Value>
double deviations(const point& p, std::uint64_t stream, Value value) {
    double sum = 0;
    for (int i = 0; i < draws; ++i) {
        sum += static_cast<double>(
            value(mx::base::random_u32({20260101, stream}, static_cast<std::uint64_t>(i))));
    }
    const double y = static_cast<double>(p.y);
    const double variance = (p.high - y) * (y - p.low);  // of a value that is low or high
    return std::abs(sum - draws * y) / std::sqrt(draws * variance);
}

}  // namespace

TEST_CASE("stochastic rounding is unbiased in every element format") {
    int inputs = 0;
    for (const mx::format::element_format& f : mx::format::element_formats) {
        const mx::format::element_params params = mx::format::params_of(f, false);
        std::uint64_t stream = mx::base::tensor_id(f.name);
        for (const int k : {8, 32}) {
            const mx::format::rounding_mode mode{rounding::stochastic, {}, k};
            for (const point& p : points_of(f)) {
                const double z = deviations(p, ++stream, [&](std::uint32_t draw) {
                    const auto e =
                        mx::format::encode_magnitude(params, mode, bits_of(p.y), 0, draw);
                    return mx::format::decode(
                        f, mx::format::with_sign(params, e.magnitude, e.negative));
                });
                CAPTURE(std::string(f.name), k, p.y, z);
                CHECK(z < bound);
                ++inputs;
            }
        }
    }
    CHECK(inputs > 400);
    CHECK(inputs < 1100);
}

TEST_CASE("the test of unbiasedness tells FBGEMM's stochastic casting apart") {
    const auto& f = *mx::format::find_element_format("e2m1");
    const auto& fbgemm = mx::codec::row_of(mx::codec::dialect_id::fbgemm);
    const auto c = mx::codec::conversion_of(fbgemm, f, {rounding::stochastic, {}, 32}, true, false);
    int caught = 0;
    for (const point& p : points_of(f)) {
        const double z = deviations(p, bits_of(p.y), [&](std::uint32_t draw) {
            return mx::codec::convert(c, bits_of(p.y), draw).value;
        });
        caught += z >= bound ? 1 : 0;
    }
    CHECK(caught >= 8);
}
