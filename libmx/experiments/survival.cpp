// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/survival.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

#include "libmx/base/random.hpp"
#include "libmx/base/student.hpp"

namespace mx::experiments {
namespace {

constexpr double normal_975 = 1.959963984540054;

// A group of runs, sorted to be counted at each step.
class run_counts {
  public:
    explicit run_counts(std::span<const lifetime> runs) {
        for (const lifetime& r : runs) {
            ends_.push_back(r.step);
            if (r.unstable) events_.push_back(r.step);
        }
        std::ranges::sort(ends_);
        std::ranges::sort(events_);
    }
    std::size_t at_risk(std::uint64_t step) const {
        return static_cast<std::size_t>(ends_.end() - std::ranges::lower_bound(ends_, step));
    }
    std::size_t events_at(std::uint64_t step) const {
        const auto [first, last] = std::equal_range(events_.begin(), events_.end(), step);
        return static_cast<std::size_t>(last - first);
    }

  private:
    std::vector<std::uint64_t> ends_, events_;
};

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
    const run_counts all(runs);
    const double n = static_cast<double>(runs.size());
    if (!runs.empty()) {
        const std::uint64_t last = std::ranges::max(runs, {}, &lifetime::step).step;
        now.low = std::pow(0.025, 1 / static_cast<double>(all.at_risk(last)));
    }
    std::vector<survival_point> curve{now};
    double greenwood = 0;
    for (const std::uint64_t step : event_steps(runs)) {
        now.step = step;
        now.at_risk = all.at_risk(step);
        now.events = all.events_at(step);
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
    const run_counts of_a(a), of_b(b);
    double excess = 0, variance = 0;
    for (const std::uint64_t step : steps) {
        const auto ra = static_cast<double>(of_a.at_risk(step));
        const double r = ra + static_cast<double>(of_b.at_risk(step));
        const auto da = static_cast<double>(of_a.events_at(step));
        const double d = da + static_cast<double>(of_b.events_at(step));
        excess += da - d * ra / r;
        if (r > 1) variance += d * (ra / r) * (1 - ra / r) * (r - d) / (r - 1);
    }
    if (!(variance > 0)) return std::nullopt;
    rank_test t;
    t.chi_squared = excess * excess / variance;
    t.p = std::erfc(std::sqrt(t.chi_squared / 2));
    return t;
}

namespace {

constexpr double power_wanted = 0.8;

// Uniform in (0, 1).
double uniform_draw(const base::random_key& key, std::uint64_t index) {
    return (base::random_u32(key, index) + 0.5) / 4294967296.0;
}

// Runs of which a share becomes unstable; more of them if the share is larger, at the same draws.
void draw_runs(const base::random_key& key, std::uint64_t first, double share,
               std::vector<lifetime>& runs) {
    constexpr double steps = 1e6;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const double u = uniform_draw(key, first + i);
        runs[i].unstable = u < share;
        runs[i].step = static_cast<std::uint64_t>(steps * std::min(1.0, u / std::max(share, 1e-9)));
    }
}

}  // namespace

std::optional<std::size_t> detectable(std::size_t unstable, std::size_t a, std::size_t b,
                                      double level) {
    // Fewer for more runs: the time is bounded, and larger groups vary less.
    const std::uint64_t simulated = std::clamp<std::uint64_t>(200'000 / (a + b + 1), 50, 400);
    const base::random_key key{1, base::tensor_id("detectable")};
    const auto power = [&](std::size_t many) {
        std::vector<lifetime> of_a(a), of_b(b);
        std::uint64_t found = 0;
        for (std::uint64_t i = 0; i < simulated; ++i) {
            const std::uint64_t first = i * (a + b);
            draw_runs(key, first, static_cast<double>(unstable) / static_cast<double>(a), of_a);
            draw_runs(key, first + a, static_cast<double>(many) / static_cast<double>(b), of_b);
            const auto test = log_rank(of_a, of_b);
            found += test && test->p < level ? 1u : 0u;
        }
        return static_cast<double>(found) / static_cast<double>(simulated);
    };
    // The least number whose share is above that of the other group and that is found.
    std::size_t low = a == 0 ? b + 1 : unstable * b / a + 1, high = b + 1;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (power(middle) >= power_wanted) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low <= b ? std::optional(low) : std::nullopt;
}

std::optional<paired_gap> gap_of(std::span<const double> differences) {
    const std::size_t n = differences.size();
    if (n < 2) return std::nullopt;
    const base::estimate mean = base::estimate_of(differences);
    paired_gap g{n, mean.mean, mean.mean - *mean.interval, mean.mean + *mean.interval};
    const double error = *mean.interval / base::student_t95(n - 1);
    if (mean.mean != 0) g.p = base::student_p(mean.mean / error, n - 1);
    return g;
}

double detectable_gap(std::size_t pairs) {
    constexpr std::size_t simulated = 4000;
    const base::random_key key{1, base::tensor_id("detectable_gap")};
    std::vector<double> needed, widths, sample(pairs);
    for (std::size_t i = 0; i < simulated; ++i) {
        for (std::size_t k = 0; k < pairs; ++k) {
            const std::uint64_t at = 2 * (i * pairs + k);
            sample[k] = std::sqrt(-2 * std::log(uniform_draw(key, at))) *
                        std::cos(2 * std::numbers::pi * uniform_draw(key, at + 1));
        }
        const base::estimate mean = base::estimate_of(sample);
        widths.push_back(*mean.interval);
        needed.push_back(*mean.interval - mean.mean);  // the test finds means above it
    }
    const auto quantile = [](std::vector<double>& x, double share) {
        const auto at = x.begin() + static_cast<std::ptrdiff_t>(share * simulated);
        std::nth_element(x.begin(), at, x.end());
        return *at;
    };
    return quantile(needed, power_wanted) / quantile(widths, 0.5);
}

std::vector<double> holm(std::span<const double> p) {
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
    std::vector<double> adjusted(p.size());
    double before = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        before = std::max(before, static_cast<double>(p.size() - k) * p[order[k]]);
        adjusted[order[k]] = std::min(1.0, before);
    }
    return adjusted;
}

}  // namespace mx::experiments
