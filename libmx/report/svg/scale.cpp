// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/scale.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/ticks.hpp"

namespace mx::report::svg {
namespace {

// Far enough from the ends of the type that spans and powers of ten stay finite.
constexpr double largest = 1e300;
constexpr double smallest = 1e-300;

// Limits around values that are all equal, or nearly.
void widen(double& low, double& high) {
    const double size = std::max(std::abs(low), std::abs(high));
    if (size <= smallest) {
        low = 0;
        high = 1;
    } else if (high - low < 1e-9 * size) {
        low -= size / 2;
        high += size / 2;
    }
}

scale linear(const axis& a, const extent& values, int wanted, margin m) {
    scale s;
    s.low = values.empty() ? 0 : values.low();
    s.high = values.empty() ? 1 : values.high();
    const bool within_share = a.share && s.low >= 0 && s.high <= 1;
    if (m == margin::round_from_zero) {
        s.low = std::min(s.low, 0.0);
        s.high = std::max(s.high, 0.0);
    }
    if (a.low) s.low = *a.low;
    if (a.high) s.high = *a.high;
    if (s.low > s.high) std::swap(s.low, s.high);
    widen(s.low, s.high);
    if (m == margin::round && s.low > 0 && s.low < s.high / 4 && !a.low) s.low = 0;
    double step = round_step((s.high - s.low) / wanted);
    if (values.whole() && !a.share) step = std::max(step, 1.0);
    if (m != margin::none) {
        if (!a.low) s.low = std::floor(s.low / step + 1e-9) * step;
        if (!a.high) s.high = std::ceil(s.high / step - 1e-9) * step;
    }
    if (within_share && !a.low) s.low = std::max(s.low, 0.0);
    if (within_share && !a.high) s.high = std::min(s.high, 1.0);
    s.ticks = linear_ticks(s.low, s.high, step, a.share);
    return s;
}

scale logarithmic(const axis& a, const extent& values, int wanted, margin m) {
    scale s;
    s.log = true;
    const bool fixed_low = a.low && *a.low >= smallest;
    const bool fixed_high = a.high && *a.high >= smallest;
    s.low = std::max(fixed_low ? *a.low : values.positive(), smallest);
    s.high = std::max(fixed_high ? *a.high : values.high(), smallest);
    if (s.low > s.high) std::swap(s.low, s.high);
    if (s.high < s.low * 1.0001) {
        s.low /= 2;
        s.high *= 2;
    }
    if (values.powers_of_two()) {
        if (m != margin::none && !fixed_low) s.low /= std::sqrt(2.0);
        if (m != margin::none && !fixed_high) s.high *= std::sqrt(2.0);
        s.ticks = binary_ticks(s.low, s.high);
        return s;
    }
    if (m != margin::none) {
        if (!fixed_low) s.low = round_below(s.low);
        if (!fixed_high) s.high = round_above(s.high);
    }
    s.ticks = log_ticks(s.low, s.high, wanted, a.share);
    return s;
}

}  // namespace

void extent::add(double x) {
    if (!std::isfinite(x)) return;
    x = std::clamp(x, -largest, largest);
    low_ = std::min(low_, x);
    high_ = std::max(high_, x);
    if (x > 0) positive_ = std::min(positive_, x);
    whole_ = whole_ && x == std::floor(x);
    halves_ = halves_ && x - std::floor(x) == 0.5;
    int exponent = 0;
    powers_of_two_ = powers_of_two_ && x >= 1 && x <= 0x1p20 && std::frexp(x, &exponent) == 0.5;
}

double scale::operator()(double x) const {
    if (beyond(x) != 0) return beyond(x) < 0 ? 0 : 1;
    if (!log) return (x - low) / (high - low);
    return std::log(x / low) / std::log(high / low);
}

int scale::beyond(double x) const {
    if (x > high) return 1;
    return x >= low ? 0 : -1;
}

scale scale_of(const axis& a, const extent& values, int wanted, margin m) {
    const auto finite = [](std::optional<double> x) {
        const bool usable = x && std::isfinite(*x) && std::abs(*x) <= largest;
        return usable ? x : std::optional<double>();
    };
    axis clean = a;
    clean.low = finite(a.low);
    clean.high = finite(a.high);
    const bool log = a.log && !values.empty() && values.has_positive();
    return log ? logarithmic(clean, values, wanted, m) : linear(clean, values, wanted, m);
}

}  // namespace mx::report::svg
