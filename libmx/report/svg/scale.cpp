// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/numbers.hpp"

namespace mx::report::svg {
namespace {

// Bounds on axis values, so that spans and powers of ten stay finite.
constexpr double largest = 1e300;
constexpr double smallest = 1e-300;

constexpr double hair = 1e-9;  // relative; limits and ticks come from divisions

// m * 10^exponent as the nearest double, as in a decimal literal.
double decimal(int m, int exponent) { return number_of(fmt::format("{}e{}", m, exponent)); }

int decade_of(double x) { return static_cast<int>(std::floor(std::log10(x))); }

// The nearest number 1, 2 or 5 times a power of ten that is not below, or not above, `x` > 0.
double round_with(double x, bool above) {
    const int decade = decade_of(x);
    const int steps[] = {1, 2, 5};
    double best = decimal(1, above ? decade + 2 : decade - 1);
    for (int k = decade - 1; k <= decade + 1; ++k) {
        for (const int m : steps) {
            const double candidate = decimal(m, k);
            if (above && candidate >= x) best = std::min(best, candidate);
            if (!above && candidate <= x) best = std::max(best, candidate);
        }
    }
    return best;
}

bool within(double x, double low, double high) {
    return x >= low * (1 - hair) && x <= high * (1 + hair);
}

// Every `stride`-th power of ten, with the multiples `steps` of each.
std::vector<double> decades(double low, double high, int stride, const std::vector<int>& steps) {
    std::vector<double> out;
    const int last = decade_of(high) + 1;
    for (int k = decade_of(low) - 1; k <= last; ++k) {
        if (k % stride != 0) continue;
        for (const int m : steps) {
            const double x = decimal(m, k);
            if (within(x, low, high)) out.push_back(std::clamp(x, low, high));
        }
    }
    return out;
}

// Allows for rounding: 0.1 + 0.2 must still give a step of 0.3.
double round_step(double x) { return round_with(x * (1 - hair), true); }

// Multiples of `step` within the limits, all with the same decimals; in percent for a share.
std::vector<tick> linear_ticks(double low, double high, double step, bool share) {
    const double shown = share ? 100 * step : step;
    const double most = std::max(std::abs(low), std::abs(high)) * (share ? 100 : 1);
    const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(shown) + hair)));
    const bool powers = most >= 1e6 || most < 1e-3;
    std::vector<tick> out;
    const double first = std::ceil(low / step - hair);
    for (int i = 0; i < 100; ++i) {
        const double multiple = first + i;
        const double x = multiple * step;
        if (x > high + hair * step) break;
        const double y = share ? 100 * x : x;
        const int digits = std::clamp(decade_of(most) - decade_of(shown) + 1, 1, 15);
        std::string text =
            powers ? number_text(multiple == 0 ? 0 : y, digits) : fixed_text(y, decimals);
        if (share) text += '%';
        out.push_back({std::clamp(x, low, high), std::move(text)});
    }
    return out;
}

// Several decades: powers of ten; fewer: 1, 2 and 5 in each; otherwise multiples of a step.
std::vector<tick> log_ticks(double low, double high, int requested, bool share) {
    std::vector<double> values = decades(low, high, 1, {1});
    if (values.size() < 3) values = decades(low, high, 1, {1, 2, 5});
    if (values.size() < 3)
        return linear_ticks(low, high, round_step((high - low) / requested), share);
    for (int stride = 2; static_cast<int>(values.size()) > 2 * requested; ++stride) {
        values = decades(low, high, stride, {1});
    }
    std::vector<tick> out;
    for (const double x : values) {
        std::string text = number_text(share ? 100 * x : x, 3);
        if (share) text += '%';
        out.push_back({x, std::move(text)});
    }
    return out;
}

// Powers of two, written out.
std::vector<tick> binary_ticks(double low, double high) {
    std::vector<tick> out;
    for (int exponent = 0; exponent <= 20; ++exponent) {
        const double x = std::ldexp(1.0, exponent);
        if (within(x, low, high)) out.push_back({x, fixed_text(x, 0)});
    }
    return out;
}

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

scale linear(const axis& a, const extent& values, int requested, margin m) {
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
    double step = round_step((s.high - s.low) / requested);
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

scale logarithmic(const axis& a, const extent& values, int requested, margin m) {
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
        if (!fixed_low) s.low = round_with(s.low, false);
        if (!fixed_high) s.high = round_with(s.high, true);
    }
    s.ticks = log_ticks(s.low, s.high, requested, a.share);
    return s;
}

}  // namespace

double round_above(double x) { return round_with(x, true); }

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

scale scale_of(const axis& a, const extent& values, int requested, margin m) {
    const auto finite = [](std::optional<double> x) {
        const bool usable = x && std::isfinite(*x) && std::abs(*x) <= largest;
        return usable ? x : std::optional<double>();
    };
    axis clean = a;
    clean.low = finite(a.low);
    clean.high = finite(a.high);
    const bool log = a.log && !values.empty() && values.has_positive();
    return log ? logarithmic(clean, values, requested, m) : linear(clean, values, requested, m);
}

}  // namespace mx::report::svg
