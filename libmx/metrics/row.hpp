// SPDX-License-Identifier: Apache-2.0
// The figures of one tensor under one recipe, by the names used in every output.
#pragma once

#include "libmx/metrics/totals.hpp"

namespace mx::metrics {

/// x: values of the tensor; d: dequantized values; y = x / S (with an offset O, (x - O) / S):
/// scaled values; q: y rounded to the element format. Sums and shares are over finite elements
/// whose block has no NaN or Inf. NaN: undefined (a mean of nothing, a ratio to zero, a figure of
/// blocks under a recipe without), null in JSON.
struct row {
    double rmse;                  ///< sqrt(mean((x - d)^2)): R-MSE of Yang et al.
    double nrmse;                 ///< rmse / rms; undefined for a zero tensor
    double sqnr_db;               ///< -20 log10(nrmse); undefined where the error or x is zero
    double rms;                   ///< sqrt(mean(x^2))
    double spread_error;          ///< rmse / standard deviation of x; undefined where that is zero
                                  ///< or was not asked for
    double crest_factor;          ///< max |x| / rms, x after the recipe's transform
    double exact;                 ///< 1: every d equals its x; 0: not
    double max_abs_error;         ///< max |x - d|
    double overflow_rate;         ///< share with |y| beyond the largest value (Yang et al.)
    double clamp_rate;            ///< share with the rounded |y| beyond it: saturation changed it
    double top_code_rate;         ///< share whose q is the largest of its sign (Su et al.)
    double underflow_rate;        ///< share with x != 0 and d = 0
    double subnormal_rate;        ///< share with 0 < |q| < smallest normal; undefined without
    double dequant_overflow;      ///< elements whose d overflows float32 as the dialect computes
                                  ///< it, though S and q are finite; undefined under dialect ocp
    double eligible_blocks;       ///< blocks with two or more non-zero finite elements
    double collapsed_block_rate;  ///< of these: all non-zero x carry one non-zero code magnitude
    double saturated_block_rate;  ///< of these: all non-zero x carry the largest code of their sign
    double dead_block_rate;       ///< of these: all non-zero x become zero
    double zero_blocks;           ///< blocks of zeros only
    double mean_error;            ///< mean(d - x)
    double gain;                  ///< sum(x d) / sum(x^2); 1: no multiplicative bias
    double cosine;                ///< sum(x d) / sqrt(sum(x^2) sum(d^2))
    double bits_per_element;      ///< of an element, and scale and offset bits over the elements
};

row row_of(const totals& t);

}  // namespace mx::metrics
