// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/metrics.hpp"

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "libmx/base/random.hpp"
#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {
namespace {

using wide = boost::multiprecision::cpp_bin_float_50;

wide as_wide(const rational& v) {
    return wide(boost::multiprecision::numerator(v)) / wide(boost::multiprecision::denominator(v));
}

void add(element_counts& to, const element_counts& from) {
    to.elements += from.elements;
    to.nan += from.nan;
    to.inf += from.inf;
    to.poisoned += from.poisoned;
    to.nonzero += from.nonzero;
    to.overflow += from.overflow;
    to.clamp += from.clamp;
    to.top_code += from.top_code;
    to.underflow += from.underflow;
    to.subnormal += from.subnormal;
    to.dequant_overflow += from.dequant_overflow;
}

void add(exact_sums& to, const exact_sums& from) {
    to.error2 += from.error2;
    to.x += from.x;
    to.x2 += from.x2;
    to.xd += from.xd;
    to.d2 += from.d2;
    to.error += from.error;
    to.max_error = std::max(to.max_error, from.max_error);
    to.max_x = std::max(to.max_x, from.max_x);
    to.clamp_error2 += from.clamp_error2;
    to.underflow_error2 += from.underflow_error2;
    to.grid_error2 += from.grid_error2;
}

// x = significand * 2^exponent with the smallest integer significand (below 2^24).
struct odd_form {
    integer significand;
    int exponent;
};

odd_form odd_form_of(float x) {
    const integer ticks = ticks_of(x);
    const auto zeros = static_cast<int>(boost::multiprecision::lsb(ticks));
    return {ticks >> zeros, zeros + tick_exponent};
}

// Bin k with 2^(-(k+1)/16) < least/most <= 2^(-k/16). Comparing sixteenth powers makes the edges
// rational.
int spread_bin(float least, float most) {
    const odd_form a = odd_form_of(least);
    const odd_form b = odd_form_of(most);
    const int log2_of_power =
        ceil_log2(pow(a.significand, 16), pow(b.significand, 16)) + 16 * (a.exponent - b.exponent);
    return -log2_of_power;
}

void add_histograms(measurement& m, const quantized_block& q, std::span<const float> x) {
    for (const std::uint8_t code : q.codes) ++m.code_histogram[code];
    // A float32 scale is counted by its exponent field.
    const std::uint32_t field = std::bit_cast<std::uint32_t>(q.scale) / 0x00800000u % 256u;
    ++m.scale_histogram[q.scale_code >= 0 ? static_cast<std::size_t>(q.scale_code) : field];
    if (q.count.nan + q.count.inf != 0) return;
    if (q.amax != 0.0f) {
        // amax * 2^5, divided by the power of two that puts it in [32, 64).
        const integer amax = ticks_of(q.amax);
        const integer scaled = (amax << 5) >> static_cast<int>(boost::multiprecision::msb(amax));
        ++m.amax_mantissa_histogram[static_cast<std::size_t>(scaled) - 32];
    }
    float least = 0;
    float most = 0;
    for (const float v : x) {
        const float magnitude = std::fabs(v);
        most = std::max(most, magnitude);
        if (magnitude != 0 && (least == 0 || magnitude < least)) least = magnitude;
    }
    if (most != 0) ++m.spread_histogram[spread_bin(least, most)];
}

std::optional<double> share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(as_wide(rational(part, whole)));
}

// The largest finite magnitude of the area that contains (row, col) of matrix `b`.
float largest_finite(const tensor& t, const recipe& r, std::uint64_t b, std::uint64_t row,
                     std::uint64_t col) {
    const std::uint64_t top = row / r.outer_rows * r.outer_rows;
    const std::uint64_t left = col / r.outer_cols * r.outer_cols;
    float largest = 0;
    for (std::uint64_t i = top; i < t.rows && i - top < r.outer_rows; ++i) {
        for (std::uint64_t j = left; j < t.cols && j - left < r.outer_cols; ++j) {
            const float v = t.values[(b * t.rows + i) * t.cols + j];
            if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
        }
    }
    return largest;
}

// The bumped columns of one row of blocks for systems-scaling; empty for other dialects.
std::vector<bool> bumps_of(const tensor& t, const recipe& r, std::uint64_t row) {
    const bool bumps = r.by != nullptr && r.by->name == "systems-scaling" &&
                       r.rule == scale_rule::floor_bump && r.block_rows == 1;
    if (!bumps) return {};
    return bumped_columns(t.values.subspan(row * t.cols, t.cols), r.block_cols);
}

}  // namespace

measurement measure(const tensor& t, const recipe& r) {
    measurement m;
    m.under = r;
    const value_list list = r.by == nullptr ? list_values(*r.element, r.full_range)
                                            : list_values(*r.by, *r.element, r.full_range);
    const base::random_key key{r.seed, t.id};
    const base::random_key scale_key{r.seed, ~t.id};  // scales draw from a stream of their own
    const bool random = r.round.how == format::rounding::stochastic;
    for (std::uint64_t b = 0; b < t.batch; ++b) {
        for (std::uint64_t row = 0; row < t.rows; row += r.block_rows) {
            const std::vector<bool> bumped = bumps_of(t, r, b * t.rows + row);
            recipe here = r;
            for (std::uint64_t col = 0; col < t.cols; col += r.block_cols) {
                if (r.outer_rows != 0 && col % r.outer_cols == 0) {
                    here.tensor_amax = largest_finite(t, r, b, row, col);
                }
                std::vector<float> x;
                std::vector<std::uint32_t> draws;
                for (std::uint64_t i = row; i < std::min(row + r.block_rows, t.rows); ++i) {
                    for (std::uint64_t j = col; j < std::min(col + r.block_cols, t.cols); ++j) {
                        const std::uint64_t index = (b * t.rows + i) * t.cols + j;
                        x.push_back(t.values[index]);
                        if (random) draws.push_back(base::random_u32(key, index));
                    }
                }
                const std::uint64_t first = (b * t.rows + row) * t.cols + col;
                here.block_cols = std::min(r.block_cols, t.cols - col);
                const quantized_block q =
                    quantize_block_in(here, list, x,
                                      {draws, base::random_u32(scale_key, first), bumped,
                                       std::min(r.block_cols, t.cols - col)});
                add(m.count, q.count);
                add(m.sum, q.sum);
                add_histograms(m, q, x);
                m.block.blocks += 1;
                m.block.zero += q.zero ? 1 : 0;
                m.block.eligible += q.eligible ? 1 : 0;
                m.block.collapsed += q.collapsed ? 1 : 0;
                m.block.saturated += q.saturated ? 1 : 0;
                m.block.dead += q.dead ? 1 : 0;
                m.blocks.push_back(q);
            }
        }
    }
    return m;
}

std::map<std::string, std::optional<double>> metrics_of(const measurement& m) {
    std::map<std::string, std::optional<double>> out;
    const element_counts& c = m.count;
    const std::uint64_t counted = c.elements - c.nan - c.inf - c.poisoned;
    const auto number = [](const wide& v) { return static_cast<double>(v); };
    // Sums are rounded once, to double. Every later step is rounded as well.
    const auto squared = [](const integer& sum) { return nearest_f64(sum, 2 * tick_exponent); };
    const auto single = [](const integer& sum) { return nearest_f64(sum, tick_exponent); };
    const auto n = static_cast<double>(counted);
    const double error2 = squared(m.sum.error2), x2 = squared(m.sum.x2), d2 = squared(m.sum.d2);

    for (const char* name : {"rmse", "nrmse", "sqnr_db", "rms", "max_abs_error", "mean_error",
                             "gain", "cosine", "subnormal_rate", "bits_per_element",
                             "code_entropy_bits", "crest_factor", "dequant_overflow"}) {
        out[name] = std::nullopt;
    }
    const std::array parts{std::pair{"clamp", m.sum.clamp_error2},
                           std::pair{"underflow", m.sum.underflow_error2},
                           std::pair{"grid", m.sum.grid_error2}};
    out["squared_error.total"] = counted == 0 ? std::nullopt : std::optional(error2);
    for (const auto& [name, sum] : parts) {
        std::optional<double>& part = out[std::string("squared_error.") + name];
        std::optional<double>& share = out[std::string(name) + "_error_share"];
        if (counted != 0) part = squared(sum);
        if (error2 != 0) share = squared(sum) / error2;
    }
    if (counted != 0) {
        out["rmse"] = std::sqrt(error2 / n);
        out["rms"] = std::sqrt(x2 / n);
        out["max_abs_error"] = single(m.sum.max_error);
        out["mean_error"] = single(m.sum.error) / n;
    }
    if (x2 != 0) {
        out["crest_factor"] = single(m.sum.max_x) / std::sqrt(x2 / n);
        out["nrmse"] = std::sqrt(error2 / x2);
        if (error2 != 0) out["sqnr_db"] = 0.0 - 10 * std::log10(error2 / x2);
        out["gain"] = squared(m.sum.xd) / x2;
        if (d2 != 0) out["cosine"] = squared(m.sum.xd) / std::sqrt(x2 * d2);
    }
    if (m.under.by != nullptr && m.under.by->name != "ocp") {
        out["dequant_overflow"] = static_cast<double>(c.dequant_overflow);
    }
    out["overflow_rate"] = share(c.overflow, counted);
    out["clamp_rate"] = share(c.clamp, counted);
    out["top_code_rate"] = share(c.top_code, counted);
    out["underflow_rate"] = share(c.underflow, counted);
    const format::element_format& f = *m.under.element;
    if (f.kind == format::number_kind::floating && f.mantissa_bits > 0) {
        out["subnormal_rate"] = share(c.subnormal, counted);
    }
    out["eligible_blocks"] = static_cast<double>(m.block.eligible);
    out["collapsed_block_rate"] = share(m.block.collapsed, m.block.eligible);
    out["saturated_block_rate"] = share(m.block.saturated, m.block.eligible);
    out["dead_block_rate"] = share(m.block.dead, m.block.eligible);
    out["zero_blocks"] = static_cast<double>(m.block.zero);
    if (c.elements != 0) {
        const std::uint64_t side_bits = m.under.has_offset ? 8 + 16 : 8;
        out["bits_per_element"] =
            number(as_wide(code_bits(f) + rational(side_bits * m.block.blocks, c.elements)));
        wide entropy = 0;
        for (const std::uint64_t uses : m.code_histogram) {
            if (uses == 0) continue;
            const wide p = as_wide(rational(uses, c.elements));
            entropy -= p * log2(p);
        }
        out["code_entropy_bits"] = number(entropy);
    }
    return out;
}

std::map<std::string, std::optional<double>> metrics_of(const tensor& t, const recipe& r) {
    return metrics_of(measure(t, r));
}

}  // namespace mx::oracle
