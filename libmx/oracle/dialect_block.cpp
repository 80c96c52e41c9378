// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/dialect_block.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/oracle/arithmetic.hpp"
#include "libmx/oracle/dialect_microxcaling.hpp"
#include "libmx/oracle/dialect_parts.hpp"
#include "libmx/oracle/fractional.hpp"

namespace mx::oracle {
namespace {

// One element with the scale S = block * tensor it was given.
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
    // Where a NaN was cast to a scale code, the code is what values are multiplied with.
    const float stored = s.code >= 0 ? power_of_two_in(f32, s.code - 127) : s.value;
    const float used = s.code == 255 ? s.value : stored;
    return {e, multiply(f32, e.q, used), used, 1};
}

outcome under_fraction(const recipe& r, const value_list& list, float x, std::size_t i,
                       const fractional_scale& s, const block_context& context) {
    const std::uint32_t draw = context.draws.empty() ? 0u : context.draws[i];
    const element e = convert(r, list, x, s, draw);
    const float value = value_of(r, s, e.q);
    // compressed-tensors has one float32 scale for both.
    const bool one = r.by != nullptr && r.by->fractional == convention::compressed_tensors;
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

}  // namespace

quantized_block quantize_dialect_block(const recipe& r, const value_list& list,
                                       std::span<const float> x, const block_context& context) {
    quantized_block out;
    out.count.elements = x.size();
    block_maximum m;
    for (const float v : x) {
        out.count.nan += std::isnan(v) ? 1 : 0;
        out.count.inf += std::isinf(v) ? 1 : 0;
        if (std::isnan(v)) {
            m.nan = true;
        } else {
            m.amax = std::max(m.amax, std::fabs(v));
        }
    }
    out.zero = std::all_of(x.begin(), x.end(), [](float v) { return v == 0.0f; });
    out.amax = m.amax;

    const bool fraction = is_fractional(r);
    fractional_scale s{};
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
    out.eligible = magnitudes.size() >= 2;
    if (out.eligible) {
        out.collapsed =
            magnitudes[0] != 0 && std::all_of(magnitudes.begin(), magnitudes.end(),
                                              [&](std::int64_t v) { return v == magnitudes[0]; });
        out.saturated = out.count.top_code == out.count.nonzero;
        out.dead = out.count.underflow == out.count.nonzero;
    }
    return out;
}

}  // namespace mx::oracle
