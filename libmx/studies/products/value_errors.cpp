// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/value_errors.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "libmx/base/bits.hpp"
#include "libmx/base/decibels.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/report/members.hpp"

namespace mx::products {
namespace {

constexpr std::size_t run_length = 4096;

// The rank among all float32 numbers in ascending order; both zeros have rank 0.
std::int64_t rank_of(float x) {
    const std::uint32_t bits = base::bits_of(x);
    const std::int64_t magnitude = bits & base::f32_magnitude_mask;
    return (bits & base::f32_sign_mask) != 0 ? -magnitude : magnitude;
}

// The exact sums of one figure each, and the double sums of the current run.
struct accumulating {
    std::array<base::exact_sum, 5> total;
    std::array<double, 5> run{};

    void end_run() {
        for (std::size_t i = 0; i < run.size(); ++i) {
            total[i].add(run[i]);
            run[i] = 0;
        }
    }
};

}  // namespace

std::uint64_t ulp_distance(float x, float y) {
    const std::int64_t d = rank_of(x) - rank_of(y);
    return static_cast<std::uint64_t>(d < 0 ? -d : d);
}

value_errors compare_values(std::span<const float> x, std::span<const float> d) {
    value_errors e;
    e.elements = x.size();
    accumulating sums;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % run_length == 0) sums.end_run();
        if (!std::isfinite(x[i]) || !std::isfinite(d[i])) {
            ++e.non_finite;
            continue;
        }
        const std::uint64_t ulp = ulp_distance(x[i], d[i]);
        e.differing += ulp != 0 ? 1u : 0u;
        e.max_ulp = std::max(e.max_ulp, ulp);
        std::size_t bin = 0;
        for (std::uint64_t rest = ulp; rest != 0; rest >>= 1) ++bin;
        ++e.ulps[bin];
        const double a = double{x[i]}, b = double{d[i]};
        const double off = b - a;
        e.max_abs = std::max(e.max_abs, std::abs(off));
        sums.run[0] += a * a;
        sums.run[1] += b * b;
        sums.run[2] += a * off;
        sums.run[3] += off;
        sums.run[4] += off * off;
    }
    sums.end_run();
    e.x2 = sums.total[0].value();
    e.d2 = sums.total[1].value();
    e.xe = sums.total[2].value();
    e.error = sums.total[3].value();
    e.error2 = sums.total[4].value();
    return e;
}

std::optional<double> value_errors::rmse() const {
    if (counted() == 0) return {};
    return std::sqrt(error2 / static_cast<double>(counted()));
}

std::optional<double> value_errors::nrmse() const {
    if (x2 == 0) return {};
    return std::sqrt(error2 / x2);
}

std::optional<double> value_errors::sqnr_db() const {
    if (x2 == 0 || error2 == 0) return {};
    return base::decibels_of_power(error2 / x2);
}

std::optional<double> value_errors::mean_error() const {
    if (counted() == 0) return {};
    return error / static_cast<double>(counted());
}

std::optional<double> value_errors::gain() const {
    if (x2 == 0) return {};
    return 1 + xe / x2;
}

std::optional<double> value_errors::bias_share() const {
    if (x2 == 0 || error2 == 0) return {};
    return std::min(1.0, xe / x2 * (xe / error2));
}

std::optional<double> value_errors::cosine() const {
    if (x2 == 0 || d2 == 0) return {};
    return std::clamp((x2 + xe) / std::sqrt(x2) / std::sqrt(d2), -1.0, 1.0);
}

const std::array<report::declared<value_errors>, 13> error_members{{
    {"elements", "count", "elements, whatever they hold", [](auto& e) { return e.elements; }},
    {"non_finite", "count",
     "elements that are NaN or Inf in one or the other; they stay out of the rest",
     [](auto& e) { return e.non_finite; }},
    {"differing", "count", "finite elements that are not equal",
     [](auto& e) { return e.differing; }},
    {"rmse", "amount?", "sqrt(mean((d - x)^2))", [](auto& e) { return e.rmse(); }},
    {"nrmse", "amount?", "|d - x| / |x|, Frobenius norms", [](auto& e) { return e.nrmse(); }},
    {"sqnr_db", "number?", "-20 log10(nrmse) (dB); null: nothing differs",
     [](auto& e) { return e.sqnr_db(); }},
    {"max_abs_error", "amount?", "max |d - x|",
     [](auto& e) { return e.counted() == 0 ? report::value() : report::value(e.max_abs); }},
    {"max_ulp", "count", "largest distance in float32 neighbours",
     [](auto& e) { return e.max_ulp; }},
    {"mean_error", "number?", "mean(d - x)", [](auto& e) { return e.mean_error(); }},
    {"gain", "number?", "sum(x d) / sum(x^2)", [](auto& e) { return e.gain(); }},
    {"bias_share", "share?", "share of the squared error that a common gain makes up",
     [](auto& e) { return e.bias_share(); }},
    {"cosine", "number?", "sum(x d) / sqrt(sum(x^2) sum(d^2))", [](auto& e) { return e.cosine(); }},
    {"ulp_histogram", "[count]",
     "bin 0: equal; bin b: 2^(b-1) to 2^b - 1 float32 neighbours, up to the last non-empty bin",
     [](auto& e) {
         std::size_t used = e.ulps.size();
         while (used != 0 && e.ulps[used - 1] == 0) --used;
         return report::value(report::to_list(std::span(e.ulps).first(used)));
     }},
}};

}  // namespace mx::products
