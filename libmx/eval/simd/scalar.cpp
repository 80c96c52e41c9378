// SPDX-License-Identifier: Apache-2.0
// The portable kernels, which the others must equal bit for bit, and functions of single numbers.
#include <bit>
#include <cmath>
#include <limits>

#include "libmx/eval/simd/kernels.hpp"

namespace mx::eval::simd {
namespace {

#include "libmx/eval/simd/elementwise.inc"

template <typename T>
constexpr kernels_of<T> all{norm<T>, activate<T>,   softmax<T>,    turn_head<T>,
                            add<T>,  sum_logits<T>, add_crossed<T>};

struct circle_point {
    double cosine, sine;
};

// Of 2 pi u.
circle_point point_of(double u) {
    const double shifted = std::fma(u, 4.0, to_integer);
    const double n = shifted - to_integer;
    const std::uint64_t quarter = std::bit_cast<std::uint64_t>(shifted) & 3u;
    const double x = std::fma(u, 4.0, -n) * 0x1.921fb54442d18p0;
    const double square = x * x;
    const double s = x * polynomial(square, 1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880,
                                    -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0);
    const double c =
        polynomial(square, 1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                   1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0);
    const double along = (quarter & 1u) != 0 ? s : c;
    const double across = (quarter & 1u) != 0 ? c : s;
    return {quarter == 1u || quarter == 2u ? -along : along,
            (quarter & 2u) != 0 ? -across : across};
}

}  // namespace

double exponential(double x) { return precise_exp(x); }

double logarithm(double x) {
    const std::uint64_t u = std::bit_cast<std::uint64_t>(x);
    // Normalizes the significand to between sqrt(1/2) and sqrt(2).
    const std::uint64_t shifted = u - 0x3fe6a09e667f3bcdu;
    const auto e = static_cast<double>(static_cast<std::int64_t>(shifted) >> 52);
    const double m = std::bit_cast<double>(u - (shifted & 0xfff0000000000000u));
    const double s = (m - 1.0) / (m + 1.0);
    const double log_m = s * polynomial(s * s, 2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11,
                                        2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21);
    return std::fma(e, 0x1.62e42fefa39efp-1, std::fma(e, 0x1.abc9e3b39803fp-56, log_m));
}

double cosine_of_turns(double u) { return point_of(u).cosine; }
double sine_of_turns(double u) { return point_of(u).sine; }

constinit const kernels scalar_kernels{&all<float>, &all<double>};

}  // namespace mx::eval::simd
