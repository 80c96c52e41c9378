// SPDX-License-Identifier: Apache-2.0
// THE LIST of metrics: names, units, definitions and sources.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// The option that a metric requires: none, `--decompose`, `--histograms`, `--regret`.
enum class when : std::uint8_t { always, decompose, histograms, regret };

/// The option; empty for `always`.
std::string_view option_of(when collected);

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

    /// A metric that compares two recipes and cannot be computed from the totals of one.
    constexpr metric(std::string_view n, std::string_view u, std::string_view d, when w)
        : name(n), unit(u), definition(d), collected(w) {}

    /// The figure as a member of `r`: null (monostate) if undefined.
    report::value value_of(const row& r) const;
};

/// Every metric in output order.
std::span<const metric> all();

/// The row named `name`, or nullptr.
const metric* find(std::string_view name);

// The squared error by origin (`--decompose`): elements that saturate, elements that underflow, and
// rounding on the grid. The parts add up to the whole (docs/design/decomposition.md).

/// Object with `total`, `clamp`, `underflow` and `grid`: the exact sums, each rounded to double
/// once. Null if there are no elements.
report::value squared_error(const totals& t);

/// The parts divided by the total; null without an error.
report::value clamp_error_share(const totals& t);
report::value underflow_error_share(const totals& t);
report::value grid_error_share(const totals& t);

// Histograms as report values (`--histograms`). Null if they were not collected.

/// Entropy of the code histogram in bits per code.
report::value code_entropy_bits(const totals& t);
/// Count of every code, index = code.
report::value code_histogram(const totals& t);
/// Object {code: count} of the scale codes that occur.
report::value scale_histogram(const totals& t);
/// The mantissas of block maxima in [1,2): object with 32 counts `bins` and `clamp_zone`, the
/// interval [from, to] of mantissas for which the block maximum overflows the element format, empty
/// if there is none.
report::value amax_mantissa_histogram(const totals& t);
/// min(|x| != 0) / max |x| per block: object with `bins` ([upper edge, count], non-empty ones) and
/// `quantiles` (upper bin edges at 1, 5, 25, 50, 75, 95, 99 %).
report::value block_spread(const totals& t);

}  // namespace mx::metrics
