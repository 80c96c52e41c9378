// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/survival.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "libmx/base/student.hpp"

namespace mx::lab {
namespace {

constexpr double normal_975 = 1.959963984540054;

std::size_t at_risk(std::span<const lifetime> runs, std::uint64_t step) {
    return static_cast<std::size_t>(
        std::ranges::count_if(runs, [&](const lifetime& r) { return r.step >= step; }));
}
std::size_t events_at(std::span<const lifetime> runs, std::uint64_t step) {
    return static_cast<std::size_t>(std::ranges::count_if(
        runs, [&](const lifetime& r) { return r.unstable && r.step == step; }));
}

std::set<std::uint64_t> event_steps(std::span<const lifetime> runs) {
    std::set<std::uint64_t> steps;
    for (const lifetime& r : runs) {
        if (r.unstable) steps.insert(r.step);
    }
    return steps;
}

}  // namespace

std::vector<survival_point> survival_of(std::span<const lifetime> runs) {
    survival_point now;
    now.at_risk = runs.size();
    const double n = static_cast<double>(runs.size());
    now.low = runs.empty() ? 0 : std::pow(0.025, 1 / n);
    std::vector<survival_point> curve{now};
    double greenwood = 0;
    for (const std::uint64_t step : event_steps(runs)) {
        now.step = step;
        now.at_risk = at_risk(runs, step);
        now.events = events_at(runs, step);
        const auto r = static_cast<double>(now.at_risk), d = static_cast<double>(now.events);
        now.share *= 1 - d / r;
        if (now.share <= 0) {
            now.low = 0;
            now.high = 1 - std::pow(0.025, 1 / n);
        } else {
            greenwood += d / (r * (r - d));
            const double middle = std::log(-std::log(now.share));
            const double wide = normal_975 * std::sqrt(greenwood) / -std::log(now.share);
            now.low = std::exp(-std::exp(middle + wide));
            now.high = std::exp(-std::exp(middle - wide));
        }
        curve.push_back(now);
    }
    return curve;
}

std::optional<rank_test> log_rank(std::span<const lifetime> a, std::span<const lifetime> b) {
    std::set<std::uint64_t> steps = event_steps(a);
    steps.merge(event_steps(b));
    if (a.empty() || b.empty() || steps.empty()) return std::nullopt;
    double excess = 0, variance = 0;
    for (const std::uint64_t step : steps) {
        const auto ra = static_cast<double>(at_risk(a, step));
        const double r = ra + static_cast<double>(at_risk(b, step));
        const auto da = static_cast<double>(events_at(a, step));
        const double d = da + static_cast<double>(events_at(b, step));
        excess += da - d * ra / r;
        if (r > 1) variance += d * (ra / r) * (1 - ra / r) * (r - d) / (r - 1);
    }
    if (!(variance > 0)) return std::nullopt;
    rank_test t;
    t.chi_squared = excess * excess / variance;
    t.p = std::erfc(std::sqrt(t.chi_squared / 2));
    return t;
}

std::optional<paired_gap> gap_of(std::span<const double> differences) {
    const std::size_t n = differences.size();
    if (n < 2) return std::nullopt;
    const base::estimate mean = base::estimate_of(differences);
    return paired_gap{n, mean.mean, mean.mean - *mean.interval, mean.mean + *mean.interval};
}

}  // namespace mx::lab
