// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/metrics.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "libmx/report/members.hpp"

namespace mx::metrics {
namespace {

report::value share(const totals& t, const base::exact_sum& part) {
    const double whole = t.sum.error2().value();
    if (whole == 0) return {};
    return part.value() / whole;
}

using report::tally;

report::list tallies(std::span<const std::uint64_t> bins) {
    report::list out;
    for (const std::uint64_t n : bins) out.push_back(tally(n));
    return out;
}

std::uint64_t sum_of(std::span<const std::uint64_t> bins) {
    std::uint64_t total = 0;
    for (const std::uint64_t n : bins) total += n;
    return total;
}

// The smallest bin edge that at least `percent` % of the blocks do not exceed. Bins descend from
// ratio 1, so counting starts at the last one.
double spread_quantile(const histograms& h, std::uint64_t total, std::uint64_t percent) {
    const std::uint64_t rank = (total * percent + 99) / 100;
    std::uint64_t seen = 0;
    for (int bin = spread_bins; bin-- > 0;) {
        seen += h.spread[static_cast<std::size_t>(bin)];
        if (seen >= rank && seen > 0) return spread_edge(bin);
    }
    return 1.0;
}

constexpr std::array metrics{
    metric{"rmse", "", "sqrt(mean((x - d)^2)), the R-MSE", &row::rmse},
    metric{"nrmse", "", "rmse / sqrt(mean(x^2))", &row::nrmse},
    metric{"sqnr_db", "dB", "-20 log10(nrmse)", &row::sqnr_db},
    metric{"rms", "", "sqrt(mean(x^2))", &row::rms},
    metric{"spread_error", "",
           "rmse over the standard deviation of x: the error relative to the differences between "
           "gains; for norms, null for others",
           &row::spread_error},
    metric{"crest_factor", "", "max |x| / rms, x as quantized (after the recipe's transform)",
           &row::crest_factor},
    metric{"exact", "", "true when every d equals its x", &row::exact},
    metric{"max_abs_error", "", "max |x - d|", &row::max_abs_error},
    metric{"overflow_rate", "share", "|y| beyond the largest value", &row::overflow_rate},
    metric{"clamp_rate", "share", "rounded |y| beyond the largest value", &row::clamp_rate},
    metric{"top_code_rate", "share", "q is the largest code of its sign", &row::top_code_rate},
    metric{"underflow_rate", "share", "x != 0 and d = 0", &row::underflow_rate},
    metric{"subnormal_rate", "share", "0 < |q| < smallest normal", &row::subnormal_rate},
    metric{"dequant_overflow", "count",
           "elements whose d overflows in the dialect's own arithmetic; null under ocp",
           &row::dequant_overflow},
    metric{"eligible_blocks", "count", "blocks with two or more non-zero finite elements",
           &row::eligible_blocks},
    metric{"collapsed_block_rate", "share",
           "eligible blocks whose non-zero inputs all get the same code magnitude, other than 0 "
           "(dead_block_rate)",
           &row::collapsed_block_rate},
    metric{"saturated_block_rate", "share",
           "eligible blocks whose non-zero inputs all get the largest code",
           &row::saturated_block_rate},
    metric{"dead_block_rate", "share",
           "eligible blocks whose non-zero inputs all get q = 0 (with an offset they become the "
           "offset)",
           &row::dead_block_rate},
    metric{"zero_blocks", "count", "blocks of zeros only", &row::zero_blocks},
    metric{"mean_error", "", "mean(d - x)", &row::mean_error},
    metric{"gain", "", "sum(x d) / sum(x^2)", &row::gain},
    metric{"cosine", "", "sum(x d) / sqrt(sum(x^2) sum(d^2))", &row::cosine},
    metric{"bits_per_element", "bits", "element bits plus scale and offset bits per block",
           &row::bits_per_element},
    metric{"squared_error", "",
           "sum((x - d)^2) as an object: the total, and its parts clamp (the elements of "
           "clamp_rate), underflow (of the others, those of underflow_rate) and grid (the rest)",
           when::decompose, squared_error},
    metric{"clamp_error_share", "share", "the clamp part of squared_error over its total",
           when::decompose, clamp_error_share},
    metric{"underflow_error_share", "share", "the underflow part of squared_error over its total",
           when::decompose, underflow_error_share},
    metric{"grid_error_share", "share", "the grid part of squared_error over its total",
           when::decompose, grid_error_share},
    metric{"best_rmse", "",
           "rmse under the best scales: the same elements, blocks and scale format under "
           "scale=search (squared error, all codes) of dialect ocp; null with an offset, with "
           "stochastic rounding, for float32 scales, and for outer scales from files of a dialect "
           "that stores their inverse",
           when::regret},
    metric{"regret", "",
           "rmse^2 - best_rmse^2, the mean squared error that better scales would save; 0 if "
           "these differ by less than a relative 1e-6; below 0 if a dialect or another tensor "
           "scale has a smaller error",
           when::regret},
    metric{"regret_share", "share", "regret over rmse^2", when::regret},
    metric{"code_entropy_bits", "bits", "entropy of the code histogram", when::histograms,
           code_entropy_bits},
    metric{"code_histogram", "count", "elements per code", when::histograms, code_histogram},
    metric{"scale_histogram", "count", "blocks per scale code (float32 scales: per exponent field)",
           when::histograms, scale_histogram},
    metric{"amax_mantissa_histogram", "count",
           "block maxima by mantissa in [1,2), 32 bins, with the clamp zone", when::histograms,
           amax_mantissa_histogram},
    metric{"block_spread", "count", "min |x != 0| / max |x| per block, bins of 1/16 octave",
           when::histograms, block_spread},
};

}  // namespace

report::value squared_error(const totals& t) {
    if (t.counted() == 0) return {};
    report::record out;
    out.emplace_back("total", t.sum.error2().value());
    out.emplace_back("clamp", t.sum.clamp.value());
    out.emplace_back("underflow", t.sum.underflow.value());
    out.emplace_back("grid", t.sum.grid().value());
    return out;
}

report::value clamp_error_share(const totals& t) { return share(t, t.sum.clamp); }
report::value underflow_error_share(const totals& t) { return share(t, t.sum.underflow); }
report::value grid_error_share(const totals& t) { return share(t, t.sum.grid()); }

report::value code_entropy_bits(const totals& t) {
    if (t.distribution == nullptr) return {};
    const auto total = static_cast<double>(sum_of(t.distribution->codes));
    if (total == 0) return {};
    double entropy = 0;
    for (const std::uint64_t n : t.distribution->codes) {
        if (n == 0) continue;
        const double share = static_cast<double>(n) / total;
        entropy -= share * std::log2(share);
    }
    return entropy;
}

report::value code_histogram(const totals& t) {
    if (t.distribution == nullptr) return {};
    const std::size_t codes = std::size_t{1} << t.element_bits;
    return tallies(std::span(t.distribution->codes).first(codes));
}

report::value scale_histogram(const totals& t) {
    if (t.distribution == nullptr) return {};
    report::record out;
    for (std::size_t code = 0; code < t.distribution->scales.size(); ++code) {
        const std::uint64_t n = t.distribution->scales[code];
        if (n != 0) out.emplace_back(fmt::format("{}", code), tally(n));
    }
    return out;
}

report::value amax_mantissa_histogram(const totals& t) {
    if (t.distribution == nullptr) return {};
    report::record out;
    out.emplace_back("bins", tallies(t.distribution->amax_mantissa));
    report::list zone;
    if (t.clamp_from < t.clamp_to) {
        zone.push_back(t.clamp_from);
        zone.push_back(t.clamp_to);
    }
    out.emplace_back("clamp_zone", std::move(zone));
    return out;
}

report::value block_spread(const totals& t) {
    if (t.distribution == nullptr) return {};
    const std::uint64_t total = sum_of(t.distribution->spread);
    report::list bins;
    for (int bin = 0; bin < spread_bins; ++bin) {
        const std::uint64_t n = t.distribution->spread[static_cast<std::size_t>(bin)];
        if (n == 0) continue;
        report::list pair;
        pair.push_back(spread_edge(bin));
        pair.push_back(tally(n));
        bins.push_back(std::move(pair));
    }
    report::record quantiles;
    for (const std::uint64_t percent : {1u, 5u, 25u, 50u, 75u, 95u, 99u}) {
        quantiles.emplace_back(
            fmt::format("p{:02}", percent),
            total == 0 ? report::value{}
                       : report::value{spread_quantile(*t.distribution, total, percent)});
    }
    report::record out;
    out.emplace_back("bins", std::move(bins));
    out.emplace_back("quantiles", std::move(quantiles));
    return out;
}

report::value metric::value_of(const row& r) const {
    const double x = r.*member;
    if (std::isnan(x)) return {};
    if (unit == "count") return static_cast<std::int64_t>(x);
    if (member == &row::exact) return x != 0;
    return x;
}

std::string_view option_of(when collected) {
    constexpr std::array<std::string_view, 4> options{"", "--decompose", "--histograms",
                                                      "--regret"};
    return options[static_cast<std::size_t>(collected)];
}

std::span<const metric> all() { return metrics; }

const metric* find(std::string_view name) {
    for (const metric& m : metrics) {
        if (m.name == name) return &m;
    }
    return nullptr;
}

}  // namespace mx::metrics
