// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/student.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mx::base {
namespace {

// P(|T| < t) where t = sqrt(degrees) tan(theta).
double two_sided(std::size_t degrees, double theta) {
    const bool odd = degrees % 2 == 1;
    const double c = std::cos(theta);
    // The series runs over cos^k, k = 1, 3, .. degrees - 2 (odd) or 0, 2, .. degrees - 2 (even).
    double term = odd ? c : 1.0;
    double sum = 0;
    for (std::size_t k = odd ? 1 : 0; k + 2 <= degrees; k += 2) {
        sum += term;
        const auto n = static_cast<double>(k);
        term *= (n + 1) / (n + 2) * c * c;
    }
    const double series = std::sin(theta) * sum;
    return odd ? 2 / std::numbers::pi * (theta + series) : series;
}

}  // namespace

double student_t95(std::size_t degrees) {
    double low = 0;
    double high = std::numbers::pi / 2;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        (two_sided(degrees, middle) < 0.95 ? low : high) = middle;
    }
    return std::sqrt(static_cast<double>(degrees)) * std::tan(low);
}

double student_p(double t, std::size_t degrees) {
    const double theta = std::atan(std::abs(t) / std::sqrt(static_cast<double>(degrees)));
    return std::max(0.0, 1 - two_sided(degrees, theta));
}

estimate estimate_of(std::span<const double> values) {
    const auto n = static_cast<double>(values.size());
    double sum = 0;
    for (const double v : values) sum += v;
    estimate e{sum / n, {}};
    if (values.size() < 2) return e;
    double squares = 0;
    for (const double v : values) squares += (v - e.mean) * (v - e.mean);
    e.interval = student_t95(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
    return e;
}

}  // namespace mx::base
