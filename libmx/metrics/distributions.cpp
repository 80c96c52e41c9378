// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/distributions.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <utility>

#include "libmx/report/members.hpp"

namespace mx::metrics {
namespace {

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

// The smallest bin edge that at least `percent` % of the blocks do not exceed. Bins run downward
// from ratio 1, so the count starts at the far end.
double spread_quantile(const histograms& h, std::uint64_t total, std::uint64_t percent) {
    const std::uint64_t wanted = (total * percent + 99) / 100;
    std::uint64_t seen = 0;
    for (int bin = spread_bins; bin-- > 0;) {
        seen += h.spread[static_cast<std::size_t>(bin)];
        if (seen >= wanted && seen > 0) return spread_edge(bin);
    }
    return 1.0;
}

}  // namespace

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

}  // namespace mx::metrics
