// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/metrics.hpp"

#include <array>
#include <cmath>

#include "libmx/metrics/decomposition.hpp"
#include "libmx/metrics/distributions.hpp"

namespace mx::metrics {
namespace {

constexpr std::array metrics{
    metric{"rmse", "", "sqrt(mean((x - d)^2)), the R-MSE", &row::rmse},
    metric{"nrmse", "", "rmse / sqrt(mean(x^2))", &row::nrmse},
    metric{"sqnr_db", "dB", "-20 log10(nrmse)", &row::sqnr_db},
    metric{"rms", "", "sqrt(mean(x^2))", &row::rms},
    metric{"crest_factor", "", "max |x| / rms, x as quantized (after the recipe's transform)",
           &row::crest_factor},
    metric{"exact", "", "true when every d equals its x", &row::exact},
    metric{"max_abs_error", "", "max |x - d|", &row::max_abs_error},
    metric{"overflow_rate", "share", "|y| beyond the largest value", &row::overflow_rate},
    metric{"clamp_rate", "share", "rounded |y| beyond the largest value", &row::clamp_rate},
    metric{"top_code_rate", "share", "q is the largest code of its sign", &row::top_code_rate},
    metric{"underflow_rate", "share", "x != 0 and q = 0", &row::underflow_rate},
    metric{"subnormal_rate", "share", "0 < |q| < smallest normal", &row::subnormal_rate},
    metric{"dequant_overflow", "count",
           "elements whose d overflows in the dialect's own arithmetic; null under ocp",
           &row::dequant_overflow},
    metric{"eligible_blocks", "count", "blocks with two or more non-zero finite elements",
           &row::eligible_blocks},
    metric{"collapsed_block_rate", "share",
           "eligible blocks whose non-zero inputs all carry one code magnitude",
           &row::collapsed_block_rate},
    metric{"saturated_block_rate", "share",
           "eligible blocks whose non-zero inputs all carry the largest code",
           &row::saturated_block_rate},
    metric{"dead_block_rate", "share", "eligible blocks whose non-zero inputs all underflow",
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

report::value metric::value_of(const row& r) const {
    const double x = r.*member;
    if (std::isnan(x)) return {};
    if (unit == "count") return static_cast<std::int64_t>(x);
    if (member == &row::exact) return x != 0;
    return x;
}

std::span<const metric> all() { return metrics; }

const metric* find(std::string_view name) {
    for (const metric& m : metrics) {
        if (m.name == name) return &m;
    }
    return nullptr;
}

}  // namespace mx::metrics
