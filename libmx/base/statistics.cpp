// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libmx/base/random.hpp"

namespace mx::base {
namespace {

struct moments_of_pairs {
    double xx = 0, yy = 0, xy = 0;
};

moments_of_pairs centred(std::span<const double> x, std::span<const double> y) {
    const auto n = static_cast<double>(x.size());
    const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
    const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
    moments_of_pairs m;
    for (std::size_t i = 0; i < x.size(); ++i) {
        m.xx += (x[i] - mean_x) * (x[i] - mean_x);
        m.yy += (y[i] - mean_y) * (y[i] - mean_y);
        m.xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    return m;
}

}  // namespace

std::vector<double> ranks_of(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> ranks(values.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t last = first;
        while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
        for (std::size_t i = first; i <= last; ++i) {
            ranks[order[i]] = static_cast<double>(first + last) / 2 + 1;
        }
        first = last + 1;
    }
    return ranks;
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
    if (x.size() < 3) return std::nullopt;
    const moments_of_pairs m = centred(ranks_of(x), ranks_of(y));
    if (!(m.xx > 0) || !(m.yy > 0)) return std::nullopt;
    return m.xy / std::sqrt(m.xx * m.yy);
}

std::optional<double> power_law(std::span<const double> x, std::span<const double> y) {
    std::vector<double> log_x, log_y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!(x[i] > 0) || !(y[i] > 0)) continue;
        log_x.push_back(std::log(x[i]));
        log_y.push_back(std::log(y[i]));
    }
    if (log_x.size() < 3) return std::nullopt;
    const moments_of_pairs m = centred(log_x, log_y);
    if (!(m.xx > 0)) return std::nullopt;
    return m.xy / m.xx;
}

std::optional<interval> bootstrap(pair_statistic of, std::span<const double> x,
                                  std::span<const double> y, std::uint64_t seed) {
    constexpr std::size_t draws = 2000;
    const std::size_t n = x.size();
    const random_key key{seed, tensor_id("experiments.bootstrap")};
    std::vector<double> found, drawn_x(n), drawn_y(n);
    for (std::size_t draw = 0; draw < draws; ++draw) {
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint64_t word = random_u32(key, draw * n + i);
            const auto at = static_cast<std::size_t>((word * n) >> 32);
            drawn_x[i] = x[at];
            drawn_y[i] = y[at];
        }
        if (const auto value = of(drawn_x, drawn_y)) found.push_back(*value);
    }
    if (10 * found.size() < 9 * draws) return std::nullopt;
    std::ranges::sort(found);
    const auto at = [&](double share) {
        return found[static_cast<std::size_t>(share * static_cast<double>(found.size() - 1))];
    };
    return interval{at(0.025), at(0.975)};
}

}  // namespace mx::base
