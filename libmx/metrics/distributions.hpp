// SPDX-License-Identifier: Apache-2.0
// Histograms as report values (`--histograms`). Null when they were not collected.
#pragma once

#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

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
