// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/metrics.hpp"

#include <array>

#include "libmx/metrics/distributions.hpp"
#include "libmx/metrics/error.hpp"
#include "libmx/metrics/rates.hpp"

namespace mx::metrics {
namespace {

constexpr std::array metrics{
    metric{"rmse", "", "sqrt(mean((x - d)^2)), the R-MSE", false, rmse},
    metric{"nrmse", "", "rmse / sqrt(mean(x^2))", false, nrmse},
    metric{"sqnr_db", "dB", "-20 log10(nrmse)", false, sqnr_db},
    metric{"rms", "", "sqrt(mean(x^2))", false, rms},
    metric{"exact", "", "true when every d equals its x", false, exact},
    metric{"max_abs_error", "", "max |x - d|", false, max_abs_error},
    metric{"overflow_rate", "share", "|y| beyond the largest value", false, overflow_rate},
    metric{"clamp_rate", "share", "rounded |y| beyond the largest value", false, clamp_rate},
    metric{"top_code_rate", "share", "q is the largest code of its sign", false, top_code_rate},
    metric{"underflow_rate", "share", "x != 0 and q = 0", false, underflow_rate},
    metric{"subnormal_rate", "share", "0 < |q| < smallest normal", false, subnormal_rate},
    metric{"eligible_blocks", "count", "blocks with two or more non-zero finite elements", false,
           eligible_blocks},
    metric{"collapsed_block_rate", "share",
           "eligible blocks whose non-zero inputs all carry one code magnitude", false,
           collapsed_block_rate},
    metric{"saturated_block_rate", "share",
           "eligible blocks whose non-zero inputs all carry the largest code", false,
           saturated_block_rate},
    metric{"dead_block_rate", "share", "eligible blocks whose non-zero inputs all underflow", false,
           dead_block_rate},
    metric{"zero_blocks", "count", "blocks of zeros only", false, zero_blocks},
    metric{"mean_error", "", "mean(d - x)", false, mean_error},
    metric{"gain", "", "sum(x d) / sum(x^2)", false, gain},
    metric{"cosine", "", "sum(x d) / sqrt(sum(x^2) sum(d^2))", false, cosine},
    metric{"bits_per_element", "bits", "element bits plus scale and offset bits per block", false,
           bits_per_element},
    metric{"code_entropy_bits", "bits", "entropy of the code histogram", true, code_entropy_bits},
    metric{"code_histogram", "count", "elements per code", true, code_histogram},
    metric{"scale_histogram", "count", "blocks per scale code (float32 scales: per exponent field)",
           true, scale_histogram},
    metric{"amax_mantissa_histogram", "count",
           "block maxima by mantissa in [1,2), 32 bins, with the clamp zone", true,
           amax_mantissa_histogram},
    metric{"block_spread", "count", "min |x != 0| / max |x| per block, bins of 1/16 octave", true,
           block_spread},
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
