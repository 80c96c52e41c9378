// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/exact_math.hpp"

#include <cfloat>
#include <cstdint>

#include "libmx/base/bits.hpp"

#if defined(__FAST_MATH__)
#error "the generator's bytes are fixed: build it without -ffast-math"
#endif

namespace mx::synth {

static_assert(FLT_EVAL_METHOD == 0, "float and double must be evaluated in their own precision");

namespace {
// ln 2 in two parts; the first has 32 significant bits, so that a small integer times it is exact.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;
constexpr double log2_e = 0x1.71547652b82fep+0;
}  // namespace

double exact_log(double x) {
    const std::uint64_t bits = base::bits_of(x);
    int exponent = static_cast<int>(bits >> 52) - 1023;
    double m = base::double_from_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        ++exponent;
    }
    // log m = 2 atanh(s), |s| < 0.1716: the series' terms shrink by 34 and more.
    const double s = (m - 1.0) / (m + 1.0);
    const double s2 = s * s;
    double series = 0.0;
    for (int k = 25; k >= 3; k -= 2) series = (series + 1.0 / k) * s2;
    const double e = exponent;
    return e * ln2_high + (e * ln2_low + (2.0 * s * series + 2.0 * s));
}

double exact_exp(double x) {
    const double scaled = x * log2_e;
    const int k = static_cast<int>(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
    const double r = (x - k * ln2_high) - k * ln2_low;
    double sum = 1.0;
    for (int n = 18; n >= 1; --n) sum = 1.0 + r / n * sum;
    // Two factors, for k from -1010 to 1010.
    return sum * base::exact_pow2(k / 2) * base::exact_pow2(k - k / 2);
}

}  // namespace mx::synth
