// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/exact_dot.hpp"

#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/exact_sum.hpp"

namespace mx::gemm {
namespace {

// A sum in twice double precision (Ogita, Rump, Oishi: "Accurate sum and dot product", SIAM J. Sci.
// Comput. 26, 2005, algorithm Sum2; the products are exact here): high + low, and the sum of
// magnitudes, which bounds the error.
struct compensated {
    double high = 0, low = 0, magnitude = 0;

    void add(double p) {
        const double sum = high + p;
        const double part = sum - high;
        low += (high - (sum - part)) + (p - part);
        high = sum;
    }
};

// Several independent sums, to hide the latency of additions.
constexpr std::size_t lanes = 4;

compensated add_products(const double* a, const double* b, std::size_t count, float c) {
    compensated lane[lanes];
    lane[0].high = static_cast<double>(c);
    lane[0].magnitude = std::abs(lane[0].high);
    std::size_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const double p = a[k + i] * b[k + i];
            lane[i].add(p);
            lane[i].magnitude += std::abs(p);
        }
    }
    for (; k < count; ++k) {
        const double p = a[k] * b[k];
        lane[0].add(p);
        lane[0].magnitude += std::abs(p);
    }
    compensated all = lane[0];
    for (std::size_t i = 1; i < lanes; ++i) {
        all.add(lane[i].high);
        all.low += lane[i].low;
        all.magnitude += lane[i].magnitude;
    }
    return all;
}

// The exact sum at full width, rounded to odd in float64, so that the next rounding is correct.
float rounded_once(const base::exact_sum& sum) {
    double value = sum.value();
    base::exact_sum rest = sum;
    rest.add(-value);
    const double side = rest.value();
    const std::uint64_t bits = base::bits_of(value);
    if (side != 0 && (bits & 1u) == 0) {
        // Inexact: choose the odd one of the two neighbouring float64.
        value = std::nextafter(value, side > 0 ? std::numeric_limits<double>::infinity()
                                               : -std::numeric_limits<double>::infinity());
    }
    return static_cast<float>(value);
}

// Whether every term is -0 or the sum of terms is not finite, which IEEE addition alone decides.
struct plain_sum {
    double sum;
    bool minus_zeros;
};
plain_sum add_plainly(const double* a, const double* b, std::size_t count, float c) {
    plain_sum s{static_cast<double>(c), c == 0 && std::signbit(c)};
    for (std::size_t k = 0; k < count; ++k) {
        const double p = a[k] * b[k];
        s.sum += p;
        s.minus_zeros = s.minus_zeros && p == 0 && std::signbit(p);
    }
    return s;
}

}  // namespace

float exact_dot(const double* a, const double* b, std::size_t count, float c) {
    const compensated s = add_products(a, b, count, c);
    if (!std::isfinite(s.magnitude)) return static_cast<float>(add_plainly(a, b, count, c).sum);
    if (s.magnitude == 0) return add_plainly(a, b, count, c).minus_zeros ? -0.0F : 0.0F;
    // Each of the n + 1 corrections is at most 2^-53 of a partial sum, and every addition of them
    // adds an error of 2^-53 of their size: n^2 2^-106 of the magnitudes is an ample bound.
    const double n = static_cast<double>(count) + 2;
    const double missing = n * n * 0x1p-103 * s.magnitude;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    // Widening by one float64 on each side covers the rounding of these sums. If both ends round to
    // the same float32, so does everything between them.
    const double least = std::nextafter(s.high + (s.low - missing), -infinity);
    const double most = std::nextafter(s.high + (s.low + missing), infinity);
    const auto low_end = static_cast<float>(least);
    if (base::bits_of(low_end) == base::bits_of(static_cast<float>(most))) return low_end;
    base::exact_sum sum;
    sum.add(static_cast<double>(c));
    for (std::size_t k = 0; k < count; ++k) sum.add(a[k] * b[k]);
    return rounded_once(sum);
}

}  // namespace mx::gemm
