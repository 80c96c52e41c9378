// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/metrics.hpp"

#include <array>

#include "libmx/metrics/decomposition.hpp"
#include "libmx/metrics/distributions.hpp"
#include "libmx/metrics/error.hpp"
#include "libmx/metrics/rates.hpp"

namespace mx::metrics {
namespace {

constexpr std::array metrics{
    metric{"rmse", "", "sqrt(mean((x - d)^2)), the R-MSE", when::always, rmse},
    metric{"nrmse", "", "rmse / sqrt(mean(x^2))", when::always, nrmse},
    metric{"sqnr_db", "dB", "-20 log10(nrmse)", when::always, sqnr_db},
    metric{"rms", "", "sqrt(mean(x^2))", when::always, rms},
    metric{"crest_factor", "", "max |x| / rms, x as quantized (after the recipe's transform)",
           when::always, crest_factor},
    metric{"exact", "", "true when every d equals its x", when::always, exact},
    metric{"max_abs_error", "", "max |x - d|", when::always, max_abs_error},
    metric{"overflow_rate", "share", "|y| beyond the largest value", when::always, overflow_rate},
    metric{"clamp_rate", "share", "rounded |y| beyond the largest value", when::always, clamp_rate},
    metric{"top_code_rate", "share", "q is the largest code of its sign", when::always,
           top_code_rate},
    metric{"underflow_rate", "share", "x != 0 and q = 0", when::always, underflow_rate},
    metric{"subnormal_rate", "share", "0 < |q| < smallest normal", when::always, subnormal_rate},
    metric{"dequant_overflow", "count",
           "elements whose d overflows in the dialect's own arithmetic; null under ocp",
           when::always, dequant_overflow},
    metric{"eligible_blocks", "count", "blocks with two or more non-zero finite elements",
           when::always, eligible_blocks},
    metric{"collapsed_block_rate", "share",
           "eligible blocks whose non-zero inputs all carry one code magnitude", when::always,
           collapsed_block_rate},
    metric{"saturated_block_rate", "share",
           "eligible blocks whose non-zero inputs all carry the largest code", when::always,
           saturated_block_rate},
    metric{"dead_block_rate", "share", "eligible blocks whose non-zero inputs all underflow",
           when::always, dead_block_rate},
    metric{"zero_blocks", "count", "blocks of zeros only", when::always, zero_blocks},
    metric{"mean_error", "", "mean(d - x)", when::always, mean_error},
    metric{"gain", "", "sum(x d) / sum(x^2)", when::always, gain},
    metric{"cosine", "", "sum(x d) / sqrt(sum(x^2) sum(d^2))", when::always, cosine},
    metric{"bits_per_element", "bits", "element bits plus scale and offset bits per block",
           when::always, bits_per_element},
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

std::span<const metric> all() { return metrics; }

const metric* find(std::string_view name) {
    for (const metric& m : metrics) {
        if (m.name == name) return &m;
    }
    return nullptr;
}

}  // namespace mx::metrics
