// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/block_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "libmx/base/bits.hpp"

namespace mx::tests {
namespace {

// std::mt19937_64 is specified to the bit, the standard distributions are not.
class source {
  public:
    explicit source(std::uint64_t seed) : engine_(seed) {}
    /// Uniform in [0, n).
    int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
    /// Uniform in [low, high].
    int between(int low, int high) { return low + below(high - low + 1); }
    /// Uniform in (0, 1).
    double unit() { return (static_cast<double>(engine_() >> 12) + 0.5) * 0x1p-52; }
    double normal() {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += unit();
        return sum;
    }
    float sign(float x) { return below(2) == 0 ? x : -x; }

  private:
    std::mt19937_64 engine_;
};

float nudged(float x, int ulps) {
    const auto u = static_cast<std::int64_t>(base::bits_of(x)) + ulps;
    return base::float_from_bits(
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(u, 0, base::f32_infinity - 1)));
}

// 1 + j/2^(m+1) times 2^k: the grid points and midpoints of the significand, at which rules change.
float threshold(const format::element_format& f, source& random) {
    const int bits = f.mantissa_bits + 1;
    const double significand = 1 + std::ldexp(random.below(1 << bits), -bits);
    const float amax = static_cast<float>(std::ldexp(significand, random.between(-140, 127)));
    return nudged(std::min(amax, std::numeric_limits<float>::max()), random.between(-2, 2));
}

float element(block_kind kind, const format::element_format& f, source& random, int exponent,
              std::size_t position) {
    const auto scaled = [&](double v) { return static_cast<float>(std::ldexp(v, exponent)); };
    switch (kind) {
        case block_kind::gaussian:
            return scaled(random.normal());
        case block_kind::heavy_tail:
            return scaled(random.normal() / random.unit());
        case block_kind::clustered:
            return random.sign(scaled(0.9 + 0.1 * random.unit()));
        case block_kind::off_centre:
            return scaled(40 + random.normal());
        case block_kind::log_normal:
            return random.sign(scaled(std::exp(2 * random.normal())));
        case block_kind::thresholds:
            return position == 0 ? threshold(f, random) : scaled(random.normal() / 4);
        case block_kind::ties: {
            // Half quanta from zero to a little beyond the largest value.
            const int steps = random.below(3 << (f.mantissa_bits + 2));
            const int binade = f.floating() ? random.between(0, f.emax() - f.emin() + 1) : 0;
            const double y = std::ldexp(steps, f.quantum() - 1 + binade);
            return random.sign(nudged(scaled(y), random.below(4) == 0 ? random.between(-1, 1) : 0));
        }
        case block_kind::subnormal:
            return random.sign(base::float_from_bits(
                static_cast<std::uint32_t>(random.below(1 << random.between(1, 26)))));
        case block_kind::huge:
            return random.sign(nudged(std::numeric_limits<float>::max(),
                                      -random.below(1 << random.between(1, 27))));
        case block_kind::signed_zeros:
            return random.sign(0.0f);
        case block_kind::sparse:
            return random.below(8) == 0 ? scaled(random.normal()) : random.sign(0.0f);
        case block_kind::wide:
            return random.sign(
                static_cast<float>(std::ldexp(1 + random.unit(), random.between(-149, 126))));
        case block_kind::constant:
            return scaled(1.3125);
        case block_kind::non_finite:
            break;
    }
    const float specials[] = {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()};
    return random.below(8) == 0 ? specials[random.below(3)] : scaled(random.normal());
}

}  // namespace

std::string_view name_of(block_kind kind) {
    switch (kind) {
        case block_kind::gaussian:
            return "gaussian";
        case block_kind::heavy_tail:
            return "heavy tail";
        case block_kind::clustered:
            return "clustered";
        case block_kind::off_centre:
            return "off centre";
        case block_kind::log_normal:
            return "log-normal";
        case block_kind::thresholds:
            return "thresholds";
        case block_kind::ties:
            return "ties";
        case block_kind::subnormal:
            return "subnormal";
        case block_kind::huge:
            return "huge";
        case block_kind::signed_zeros:
            return "signed zeros";
        case block_kind::sparse:
            return "sparse";
        case block_kind::wide:
            return "wide";
        case block_kind::constant:
            return "constant";
        case block_kind::non_finite:
            return "non-finite";
    }
    return "?";
}

std::vector<float> make_block(block_kind kind, const format::element_format& f, std::size_t size,
                              std::uint64_t seed) {
    source random(seed);
    const int exponent = random.below(4) == 0 ? random.between(-130, 100) : random.between(-12, 12);
    std::vector<float> x;
    for (std::size_t i = 0; i < size; ++i) x.push_back(element(kind, f, random, exponent, i));
    // The last of a block, too, should be the largest now and then.
    if (random.below(2) == 0) std::reverse(x.begin(), x.end());
    return x;
}

}  // namespace mx::tests
