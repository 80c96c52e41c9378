// SPDX-License-Identifier: Apache-2.0
// Error metrics: how far the dequantized tensor d lies from x. Sums are over finite, unpoisoned
// elements; without any, everything here is undefined (null).
#pragma once

#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// sqrt(mean((x - d)^2)): R-MSE of Yang et al.
report::value rmse(const totals& t);
/// rmse / sqrt(mean(x^2)); null for a zero tensor.
report::value nrmse(const totals& t);
/// -20 log10(nrmse); null when the error is zero or the tensor is.
report::value sqnr_db(const totals& t);
/// sqrt(mean(x^2)): the size of the tensor, which makes errors of several tensors comparable.
report::value rms(const totals& t);
/// max |x| / rms; null for a zero tensor.
report::value crest_factor(const totals& t);
/// True when every d equals its x.
report::value exact(const totals& t);
/// max |x - d|.
report::value max_abs_error(const totals& t);
/// mean(d - x).
report::value mean_error(const totals& t);
/// sum(x d) / sum(x^2): 1 means no multiplicative bias; null for a zero tensor.
report::value gain(const totals& t);
/// sum(x d) / sqrt(sum(x^2) sum(d^2)); null when x or d is zero throughout.
report::value cosine(const totals& t);

}  // namespace mx::metrics
