// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "libmx/report/svg/numbers.hpp"

namespace mx::report::svg {
namespace {

constexpr double hair = 1e-9;  // relative; limits and ticks come from divisions

// m * 10^exponent as the nearest double: what the same digits in a source file mean.
double decimal(int m, int exponent) { return number_of(fmt::format("{}e{}", m, exponent)); }

int decade_of(double x) { return static_cast<int>(std::floor(std::log10(x))); }

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
std::vector<double> decades(double low, double high, int stride, std::vector<int> steps) {
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

}  // namespace

double round_above(double x) { return round_with(x, true); }
double round_below(double x) { return round_with(x, false); }
double round_step(double x) { return round_above(x * (1 - hair)); }

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

std::vector<tick> log_ticks(double low, double high, int wanted, bool share) {
    std::vector<double> values = decades(low, high, 1, {1});
    if (values.size() < 3) values = decades(low, high, 1, {1, 2, 5});
    if (values.size() < 3) {
        return linear_ticks(low, high, round_step((high - low) / wanted), share);
    }
    for (int stride = 2; static_cast<int>(values.size()) > 2 * wanted; ++stride) {
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

std::vector<tick> binary_ticks(double low, double high) {
    std::vector<tick> out;
    for (double x = 1; x <= 0x1p20; x *= 2) {
        if (within(x, low, high)) out.push_back({x, fixed_text(x, 0)});
    }
    return out;
}

}  // namespace mx::report::svg
