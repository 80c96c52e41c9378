// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/number.hpp"
#include "libmx/oracle/rounding.hpp"

namespace mx::oracle {
namespace {

// One element and the scale S = block * tensor that applies to it.
struct outcome {
    element e;
    float value;
    float block;
    float tensor;
};

outcome under_power(const recipe& r, const value_list& list, float x, std::size_t i,
                    const block_scale& chosen, const block_maximum& m,
                    const block_context& context) {
    block_scale s = chosen;
    if (!context.bumped.empty() && context.bumped[i % context.cols]) {
        s = {-1, multiply(f32, s.value, 2)};
    }
    const bool flushed = r.flush_subnormals && microxcaling::flushes(m);
    const std::uint32_t draw = context.draws.empty() ? 0u : context.draws[i];
    const element e = r.by->convert(r, list, flushed ? multiply(f32, x, 0) : x, s, draw);
    // If a NaN was cast to a scale code, values are multiplied by that code's scale.
    const float stored = s.code >= 0 ? power_of_two_in(f32, s.code - 127) : s.value;
    const float used = s.code == 255 ? s.value : stored;
    return {e, multiply(f32, e.q, used), used, 1};
}

outcome under_fraction(const recipe& r, const value_list& list, float x, std::size_t i,
                       const float_scale& s, const block_context& context) {
    const std::uint32_t draw = context.draws.empty() ? 0u : context.draws[i];
    const element e = convert(r, list, x, s, draw);
    const float value = value_of(r, s, e.q);
    // compressed-tensors has a single float32 scale instead of two.
    const bool one = r.by != nullptr && r.by->float_scale == convention::compressed_tensors;
    return one ? outcome{e, value, s.factor, 1} : outcome{e, value, s.block, s.tensor};
}

void add(quantized_block& out, std::vector<std::int64_t>& magnitudes, const recipe& r,
         const value_list& list, float x, const outcome& o, std::uint32_t draw) {
    const integer one = ticks_of_power(0);
    const integer scale = ticks_of(o.block) * ticks_of(o.tensor);  // in squared ticks
    const auto quanta = static_cast<std::int64_t>(std::ldexp(o.e.q, -list.quantum_exponent));
    bool clamped = false;
    bool underflowed = false;
    if (x != 0) {
        ++out.count.nonzero;
        magnitudes.push_back(std::abs(quanta));
        underflowed = quanta == 0;
        out.count.underflow += underflowed ? 1 : 0;
        out.count.top_code += quanta != 0 && (quanta == list.greatest || quanta == list.least);
        const std::int64_t size = std::abs(quanta);
        out.count.subnormal += size > 0 && size < list.smallest_normal ? 1 : 0;
        if (scale != 0) {
            const rounded y =
                round_to(list, ticks_of(x) * one, scale, std::signbit(x), r.round, draw);
            out.count.overflow += y.beyond ? 1 : 0;
            clamped = y.clamped;
            out.count.clamp += clamped ? 1 : 0;
        }
    }
    const integer exact_x = ticks_of(x);
    const integer d = scale * ticks_of(o.e.q) / (one * one);
    add(out.sum, exact_x, d, clamped, underflowed);
}

namespace mp = boost::multiprecision;

// float32 arithmetic from its definition: the exact result, rounded once. A sum of opposite numbers
// is +0.
float product_with_half(float x) { return nearest_f32(ticks_of(x) / 2, std::signbit(x)); }
float sum_f32(float a, float b) {
    return nearest_f32(ticks_of(a) + ticks_of(b), std::signbit(a) && std::signbit(b));
}
float difference_f32(float a, float b) { return sum_f32(a, -b); }

struct extremes {
    float low;
    float high;
};

// The sign of zeros is irrelevant: adding an offset loses it.
extremes extremes_of(std::span<const float> x) {
    const auto [low, high] = std::minmax_element(x.begin(), x.end());
    return {*low, *high};
}

float range_of(offset_range range, std::span<const float> x, const extremes& e, float offset) {
    if (range == offset_range::half) {
        return nearest_f32((ticks_of(e.high) - ticks_of(e.low)) / 2, false);
    }
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::fabs(difference_f32(v, offset)));
    return largest;
}

float largest_magnitude(std::span<const float> x) {
    float largest = 0;
    for (const float v : x) {
        if (std::isnan(v)) return v;
        largest = std::max(largest, std::fabs(v));
    }
    return largest;
}

block_maximum look_at(std::span<const float> x, quantized_block& out) {
    block_maximum m;
    out.count.elements = x.size();
    for (const float v : x) {
        out.count.nan += std::isnan(v) ? 1 : 0;
        out.count.inf += std::isinf(v) ? 1 : 0;
        if (std::isnan(v)) {
            m.nan = true;
        } else {
            m.amax = std::max(m.amax, std::fabs(v));
        }
    }
    out.zero = std::ranges::all_of(x, [](float v) { return v == 0.0f; });
    return m;
}

void poison(quantized_block& out, const value_list& list) {
    const element_counts& c = out.count;
    out.count.poisoned = c.elements - c.nan - c.inf;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    out.codes.assign(c.elements, static_cast<std::uint8_t>(cast(list, nan, {}, 0, true)));
}

void judge(quantized_block& out, std::span<const std::int64_t> magnitudes_of_nonzero) {
    const auto& m = magnitudes_of_nonzero;
    out.eligible = m.size() >= 2;
    if (!out.eligible) return;
    out.collapsed = m[0] != 0 && std::ranges::all_of(m, [&](std::int64_t v) { return v == m[0]; });
    out.saturated = out.count.top_code == out.count.nonzero;
    out.dead = std::ranges::all_of(m, [](std::int64_t v) { return v == 0; });
}

}  // namespace

quantized_block quantize_dialect_block(const recipe& r, const value_list& list,
                                       std::span<const float> x, const block_context& context) {
    quantized_block out;
    const block_maximum m = look_at(x, out);
    out.amax = m.amax;

    const bool fraction = has_float_scale(r);
    float_scale s{};
    block_scale power{};
    if (fraction) {
        s = scale_of(r, list, x, context.draws);
        out.scale_code = s.code;
        out.scale = s.block;
    } else {
        power = r.by->scale(r, list, m, context.scale_draw);
        out.scale_code = power.code;
        out.scale = power.code >= 0 && power.code < 255 ? power_of_two_in(f32, power.code - 127)
                                                        : power.value;
    }
    std::vector<std::int64_t> magnitudes;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const outcome o = fraction ? under_fraction(r, list, x[i], i, s, context)
                                   : under_power(r, list, x[i], i, power, m, context);
        out.coded.push_back(o.e.code >= 0);
        out.codes.push_back(static_cast<std::uint8_t>(std::max(o.e.code, 0)));
        out.values.push_back(o.value);
        if (!std::isfinite(x[i])) continue;
        if (!std::isfinite(o.block) || !std::isfinite(o.e.q)) {
            ++out.count.poisoned;
            continue;
        }
        const bool foreign = r.by != nullptr && r.by->name != "ocp";
        out.count.dequant_overflow += foreign && !std::isfinite(o.value) ? 1 : 0;
        add(out, magnitudes, r, list, x[i], o, context.draws.empty() ? 0u : context.draws[i]);
    }
    judge(out, magnitudes);
    return out;
}

void add(exact_sums& sum, const integer& x, const integer& d, bool clamped, bool underflowed) {
    const integer error = d - x;
    const integer error2 = error * error;
    sum.error2 += error2;
    sum.x += x;
    sum.x2 += x * x;
    sum.xd += x * d;
    sum.d2 += d * d;
    sum.error += error;
    sum.max_error = std::max(sum.max_error, integer(mp::abs(error)));
    sum.max_x = std::max(sum.max_x, integer(mp::abs(x)));
    if (clamped) {
        sum.clamp_error2 += error2;
    } else if (underflowed) {
        sum.underflow_error2 += error2;
    } else {
        sum.grid_error2 += error2;
    }
}

quantized_block quantize_block(const recipe& r, const value_list& list, std::span<const float> x,
                               std::span<const std::uint32_t> draws) {
    return quantize_block_in(r, list, x, {draws, 0, {}, 1});
}

quantized_block quantize_block_in(const recipe& r, const value_list& list, std::span<const float> x,
                                  const block_context& context) {
    const bool ocp = r.by == nullptr || r.by->name == "ocp";
    if (!ocp || has_float_scale(r)) return quantize_dialect_block(r, list, x, context);
    const std::span<const std::uint32_t> draws = context.draws;
    quantized_block out;
    out.coded.assign(x.size(), true);
    look_at(x, out);
    out.amax = largest_magnitude(x);
    if (out.count.nan + out.count.inf != 0) {
        out.scale_code = 255;
        poison(out, list);
        return out;
    }

    float offset = 0;
    if (r.has_offset) {
        const extremes e = extremes_of(x);
        const float middle = sum_f32(product_with_half(e.high), product_with_half(e.low));
        out.offset = nearest_half_saturated(middle);
        if (value_of_half(out.offset) == 0.0f) out.offset = 0;  // a zero offset is +0
        offset = value_of_half(out.offset);
        out.amax = range_of(r.range, x, e, offset);
    }
    if (r.rule == scale_rule::search) {
        const int floor = scale_code(scale_rule::floor, list, r.emax, out.amax);
        std::vector<integer> scales;
        for (int code = 0; code < 255; ++code) scales.push_back(ticks_of_power(code - 127));
        out.scale_code = out.amax == 0 ? floor : searched_code(r, list, x, scales, floor);
    } else {
        out.scale_code = scale_code(r.rule, list, r.emax, out.amax, context.scale_draw);
    }
    out.scale = parts::power(out.scale_code - 127).value;
    if (out.scale_code == 255) {
        poison(out, list);
        return out;
    }

    const integer scale = ticks_of_power(out.scale_code - 127);
    // S*q: q quanta of S * 2^quantum_exponent each.
    const integer step = ticks_of_power(out.scale_code - 127 + list.quantum_exponent);
    const integer offset_ticks = ticks_of(offset);
    std::vector<std::int64_t> magnitudes;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float z = r.has_offset ? difference_f32(x[i], offset) : x[i];
        const std::uint32_t draw = draws.empty() ? 0u : draws[i];
        const rounded q = round_to(list, ticks_of(z), scale, std::signbit(z), r.round, draw);
        out.codes.push_back(static_cast<std::uint8_t>(q.code));
        const integer exact_x = ticks_of(x[i]);
        const integer d = offset_ticks + q.quanta * step;
        const bool underflowed = exact_x != 0 && d == 0;
        out.count.underflow += underflowed ? 1 : 0;
        if (z != 0.0f) {
            ++out.count.nonzero;
            magnitudes.push_back(std::abs(q.quanta));
        }
        out.count.overflow += q.beyond ? 1 : 0;
        out.count.clamp += q.clamped ? 1 : 0;
        out.count.top_code += q.top ? 1 : 0;
        out.count.subnormal += q.subnormal ? 1 : 0;

        add(out.sum, exact_x, d, q.clamped, underflowed);
        out.dequantized.push_back(d);
    }
    judge(out, magnitudes);
    return out;
}

float dequantized_f32(const quantized_block& block, std::size_t i) {
    if (!block.values.empty()) return block.values[i];
    if (block.scale_code == 255) return std::numeric_limits<float>::quiet_NaN();
    return nearest_f32(block.dequantized[i], false);
}

}  // namespace mx::oracle
