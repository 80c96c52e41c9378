// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mx::lab {
namespace {

double median_loss(std::vector<double>& x) {
    const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
    std::nth_element(x.begin(), middle, x.end());
    return *middle;
}

// The losses that the reference of step i (from 0) is of; empty during the burn-in.
std::span<const float> losses_before(std::span<const float> losses, std::size_t i,
                                     const instability_rule& rule) {
    if (i < std::max<std::size_t>(rule.burn_in, 1)) return {};
    const std::size_t count = std::min(i, std::max<std::size_t>(rule.window, 1));
    return losses.subspan(i - count, count);
}

// The first step at which a loss is not finite or `unstable(i, reference losses)`.
template <typename Unstable>
std::optional<std::uint64_t> first_where(std::span<const float> losses,
                                         const instability_rule& rule, const Unstable& unstable) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
        if (!std::isfinite(losses[i])) return i + 1;
        const std::span<const float> reference = losses_before(losses, i, rule);
        if (!reference.empty() && unstable(i, reference)) return i + 1;
    }
    return std::nullopt;
}

}  // namespace

instability_rule rule_for(std::string_view model, std::string_view task) {
    instability_rule rule;
    const bool paper = model == "proxy" && task == "paper";
    rule.by = paper ? instability_rule::kind::jump : instability_rule::kind::excess;
    return rule;
}

std::vector<float> judged_losses(std::vector<float> losses, bool diverged) {
    if (diverged && !losses.empty()) losses.back() = std::numeric_limits<float>::quiet_NaN();
    return losses;
}

std::optional<std::uint64_t> first_instability(std::span<const float> losses,
                                               const instability_rule& rule) {
    return rule.by == instability_rule::kind::jump ? first_jump(losses, rule)
                                                   : first_excess(losses, rule);
}

std::optional<std::uint64_t> first_jump(std::span<const float> losses,
                                        const instability_rule& rule) {
    std::vector<double> sorted;
    return first_where(losses, rule, [&](std::size_t i, std::span<const float> reference) {
        sorted.assign(reference.begin(), reference.end());
        return static_cast<double>(losses[i]) > rule.factor * median_loss(sorted);
    });
}

std::optional<std::uint64_t> first_excess(std::span<const float> losses,
                                          const instability_rule& rule) {
    // For normal differences x - y, median |x - y| = 0.6745 sqrt(2) deviations of x.
    constexpr double deviations = 0.6744897501960817 * 1.4142135623730951;
    const std::size_t running = std::max<std::size_t>(rule.running, 1);
    std::vector<double> sorted, differences;
    return first_where(losses, rule, [&](std::size_t i, std::span<const float> reference) {
        if (losses.size() - i < running) return false;
        sorted.assign(reference.begin(), reference.end());
        differences.assign(1, 0.0);
        for (std::size_t k = 1; k < sorted.size(); ++k) {
            differences.push_back(std::abs(sorted[k] - sorted[k - 1]));
        }
        const double middle = median_loss(sorted);
        const double limit = middle + std::max(rule.spread * median_loss(differences) / deviations,
                                               rule.least_excess * std::abs(middle));
        const auto above = std::ranges::count_if(losses.subspan(i, running), [&](float loss) {
            return !std::isfinite(loss) || static_cast<double>(loss) > limit;
        });
        return 2 * static_cast<std::size_t>(above) > running &&
               static_cast<double>(losses[i]) > limit;
    });
}

std::optional<double> rise_at_end(std::span<const float> losses, const instability_rule& rule) {
    const std::size_t tenth = std::max({losses.size() / 10, rule.running, std::size_t{1}});
    if (losses.size() < rule.burn_in || losses.size() - rule.burn_in < 2 * tenth) {
        return std::nullopt;
    }
    std::vector<double> sums{0};  // of the first losses after the burn-in
    for (const float loss : losses.subspan(rule.burn_in)) {
        sums.push_back(sums.back() + static_cast<double>(loss));
    }
    if (!std::isfinite(sums.back())) return std::numeric_limits<double>::infinity();
    double least = std::numeric_limits<double>::infinity(), late = 0;
    for (std::size_t end = tenth; end < sums.size(); ++end) {
        late = sums[end] - sums[end - tenth];
        least = std::min(least, late);
    }
    if (!(least > 0)) return std::nullopt;
    return late / least - 1;
}

}  // namespace mx::lab
