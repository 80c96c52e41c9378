// SPDX-License-Identifier: Apache-2.0
// Quantiles by Newton's method on the logarithm of the tail probability as a function of log m,
// which is concave for both families: from the second step on it converges from one side.
#include "datasets/generators/laws.hpp"

#include <cmath>

#include "datasets/generators/exact_math.hpp"

namespace mx::synth {
namespace {

constexpr double sqrt_2_over_pi = 0.79788456080286535588;

/// Both tails of a magnitude's distribution at one point, and its density.
struct tails {
    double upper;
    double lower;
    double density;
};

tails normal_tails(double z) {
    const double density = sqrt_2_over_pi * exact_exp(-0.5 * z * z);
    if (z < 2.5) {
        // P(|X| < z) = density * (z + z^3/3 + z^5/(3*5) + ...), all terms positive.
        double term = z;
        double sum = z;
        for (int k = 3; term > 1e-18 * sum; k += 2) {
            term *= z * z / k;
            sum += term;
        }
        const double lower = density * sum;
        return {1.0 - lower, lower, density};
    }
    // Laplace's continued fraction; 80 levels give full precision from 2.5 up.
    double fraction = z;
    for (int k = 80; k >= 1; --k) fraction = z + k / fraction;
    const double upper = density / fraction;
    return {upper, 1.0 - upper, density};
}

/// Even `freedom`: with c = freedom / (freedom + t^2) and a_k = binom(2k, k) / 4^k,
/// P(|T| < t) = sqrt(1 - c) * sum of a_k c^k over k < freedom / 2, and the upper tail is the rest
/// of that series, because the whole of it is 1.
tails student_tails(int freedom, double t) {
    const double n = freedom;
    const double c = n / (n + t * t);
    const double root = t / std::sqrt(n + t * t);
    double power = 1.0;  // a_k c^k
    double coefficient = 1.0;
    double head = 0.0;
    double slope = 0.0;
    double c_power = 1.0;
    int k = 0;
    for (; k < freedom / 2; ++k) {
        head += power;
        slope += coefficient;
        const double ratio = (2.0 * k + 1.0) / (2.0 * k + 2.0);
        coefficient *= ratio;
        power *= ratio * c;
        c_power *= c;
    }
    const double density = slope / std::sqrt(n) * c_power * std::sqrt(c);
    const double lower = root * head;
    if (lower < 0.95) return {1.0 - lower, lower, density};
    double rest = 0.0;
    for (; power > 1e-18 * rest; ++k) {
        rest += power;
        power *= (2.0 * k + 1.0) / (2.0 * k + 2.0) * c;
    }
    return {root * rest, lower, density};
}

tails tails_of(const law_row& row, double m) {
    return row.kind == family::student_t ? student_tails(row.parameter, m) : normal_tails(m);
}

/// The root of tail(m) = p for the normal law or an unscaled Student law.
double solve(const law_row& row, tail end, double p) {
    const double goal = exact_log(p);
    double m = end == tail::lower ? p : 1.0;
    for (int step = 0; step < 100; ++step) {
        const tails at = tails_of(row, m);
        const double value = end == tail::upper ? at.upper : at.lower;
        const double slope = at.density * m / value;  // of log value over log m, sign aside
        double move = (exact_log(value) - goal) / slope;
        if (end == tail::lower) move = -move;
        // The first step from the far side may overshoot; the bounds keep exp in its range.
        if (move > 3.0) move = 3.0;
        if (move < -3.0) move = -3.0;
        m *= exact_exp(move);
        if (move < 1e-13 && move > -1e-13) break;
    }
    return m;
}

/// The standard normal deviate exceeded with probability p / 2 on either side, 0 < p <= 1.
double normal_magnitude(double upper) {
    const law_row& row = row_of(law::normal);
    if (upper >= 1.0) return 0.0;
    return upper > 0.5 ? solve(row, tail::lower, 1.0 - upper) : solve(row, tail::upper, upper);
}

}  // namespace

double magnitude_quantile(const law_row& row, tail end, double p) {
    switch (row.kind) {
        case family::uniform:
            return end == tail::upper ? 1.0 - p : p;
        case family::normal:
            return solve(row, end, p);
        case family::student_t: {
            const double n = row.parameter;
            return solve(row, end, p) * std::sqrt((n - 2.0) / n);
        }
        case family::log_normal: {
            const double exponent = row.parameter * normal_magnitude(2.0 * p);
            return exact_exp(end == tail::upper ? exponent : -exponent);
        }
    }
    return 0.0;
}

}  // namespace mx::synth
