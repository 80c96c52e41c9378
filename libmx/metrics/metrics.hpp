// SPDX-License-Identifier: Apache-2.0
// THE LIST of metrics: names, units, definitions, and where each comes from.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// What a metric has to be asked for with: nothing, `--decompose`, `--histograms`, `--regret`.
enum class when : std::uint8_t { always, decompose, histograms, regret };

struct metric {
    std::string_view name;        ///< as in JSON and of the member
    std::string_view unit;        ///< "", "dB", "bits", "share", "count"
    std::string_view definition;  ///< one line
    double row::*member = nullptr;
    when collected = when::always;
    report::value (*finish)(const totals&) = nullptr;  ///< where it is no member of row

    constexpr metric(std::string_view n, std::string_view u, std::string_view d, double row::*m)
        : name(n), unit(u), definition(d), member(m) {}
    constexpr metric(std::string_view n, std::string_view u, std::string_view d, when w,
                     report::value (*f)(const totals&))
        : name(n), unit(u), definition(d), collected(w), finish(f) {}

    /// One that compares two recipes: no totals of one give it.
    constexpr metric(std::string_view n, std::string_view u, std::string_view d, when w)
        : name(n), unit(u), definition(d), collected(w) {}

    /// The figure of `r`, of which it is a member: null (monostate) where it is undefined.
    report::value value_of(const row& r) const;
};

/// Every metric in output order.
std::span<const metric> all();

/// The row named `name`, or nullptr.
const metric* find(std::string_view name);

// The squared error by origin (`--decompose`): elements that saturate, elements that underflow, and
// rounding on the grid. The parts add up to the whole (docs/design/decomposition.md).

/// Object with `total`, `clamp`, `underflow` and `grid`: the exact sums, each rounded to double
/// once. Null where nothing is counted.
report::value squared_error(const totals& t);

/// Parts over the whole; null where there is no error.
report::value clamp_error_share(const totals& t);
report::value underflow_error_share(const totals& t);
report::value grid_error_share(const totals& t);

// Histograms as report values (`--histograms`). Null when they were not collected.

/// Entropy of the code histogram in bits per code.
report::value code_entropy_bits(const totals& t);
/// Count of every code, index = code.
report::value code_histogram(const totals& t);
/// Object {code: count} of the scale codes that occur.
report::value scale_histogram(const totals& t);
/// Block maximum's mantissa in [1,2): object with 32 counts `bins` and `clamp_zone`, [from, to] of
/// the mantissas whose block maximum overflows the element format, empty when none does.
report::value amax_mantissa_histogram(const totals& t);
/// min(|x| != 0) / max |x| per block: object with `bins` ([upper edge, count], non-empty ones) and
/// `quantiles` (upper bin edges at 1, 5, 25, 50, 75, 95, 99 %).
report::value block_spread(const totals& t);

}  // namespace mx::metrics
