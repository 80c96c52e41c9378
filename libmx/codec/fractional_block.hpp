// SPDX-License-Identifier: Apache-2.0
// Quantizing one block whose scale is no power of two, for host and device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "libmx/codec/chunk_terms.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/codec/four_over_six.hpp"
#include "libmx/codec/fractional_element.hpp"

namespace mx::codec {

namespace fractional_steps {

// What a first look at the block finds; magnitudes as float32 bits.
struct survey {
    std::uint32_t nan = 0, inf = 0;
    std::uint32_t most = 0;    // also NaN and Inf
    std::uint32_t finite = 0;  // largest finite one
    std::uint32_t least = 0;   // smallest non-zero one
};

MX_HD inline survey look_at(std::span<const float> x) {
    survey s;
    std::uint32_t least = ~0u;
    for (const float v : x) {
        const std::uint32_t magnitude = base::bits_of(v) & base::f32_magnitude_mask;
        s.nan += magnitude > base::f32_infinity ? 1u : 0u;
        s.inf += magnitude == base::f32_infinity ? 1u : 0u;
        s.most = std::max(s.most, magnitude);
        if (magnitude < base::f32_infinity) s.finite = std::max(s.finite, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the top and never wins
    }
    s.least = least + 1u;
    return s;
}

MX_HD inline void quantize_elements(const block_params& p, std::span<const float> x,
                                    const block_place& place, const fractional_scale& scale,
                                    std::span<std::uint8_t> codes, bool parts,
                                    block::block_stats& out) {
    const fractional_encoder encoder(p, scale, place);
    const fractional_decoder decoder(p, scale.value);
    const bool foreign = p.by->id != dialect_id::ocp;
    const bool keeps_codes = !codes.empty();
    element_tally tally;
    const int n = static_cast<int>(x.size());
    for (int begin = 0; begin < n; begin += chunk_size) {
        const int count = n - begin < chunk_size ? n - begin : chunk_size;
        chunk_terms<double> terms;
        for (int i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(begin + i);
            if (!base::is_finite(x[at])) {
                if (keeps_codes) codes[at] = encoder.special_code(x[at]);
                continue;
            }
            const fractional_encoder::element e = encoder.encode(x[at], begin + i);
            if (keeps_codes) codes[at] = e.code;
            const block::error_part part = tally.add(p.element, x[at] != 0, e.exact, e.magnitude);
            if (foreign) {
                out.count.dequant_overflow += base::is_finite(decoder.decode(e.code)) ? 0u : 1u;
            }
            const auto exact_x = static_cast<double>(x[at]);
            terms.set(i, exact_x, e.value, e.value - exact_x, part);
        }
        add_chunk(terms, parts, out.sum, out.part);
    }
    tally.finish(p.element, out);
}

}  // namespace fractional_steps

/// quantize_block for scale formats that are not powers of two; `codes` may be empty. Exact
/// arithmetic under dialect ocp, the dialect's float32 operations otherwise; either way y = x / S,
/// with S the exact product of block and tensor scale, decides what overflows and what clamps, and
/// d = S * q is exact: at most 40 bits. Sums are in double, in units of x, in the shape of
/// sum_tree.hpp. A zero scale makes every element a zero of its sign; non-zero ones count as
/// underflow.
MX_HD inline block::block_stats quantize_fractional(const block_params& p, std::span<const float> x,
                                                    const block_place& place,
                                                    std::span<std::uint8_t> codes, bool parts) {
    block::block_stats out{};
    const fractional_steps::survey seen = fractional_steps::look_at(x);
    out.count.elements = static_cast<std::uint32_t>(x.size());
    out.count.nan = seen.nan;
    out.count.inf = seen.inf;
    out.is.zero = seen.most == 0;
    out.x_max = seen.most;
    out.x_min = seen.least;
    out.amax = seen.nan == 0 || nan_decides(p) ? seen.most
               : seen.inf != 0                 ? base::f32_infinity
                                               : seen.finite;
    fractional_scale scale = choose_scale(p, out.amax, p.largest);
    if (p.select != four_over_six::none && !base::is_nan(scale.value)) {
        scale = select_scale(p, x, place, scale, choose_scale(p, out.amax, 4.0f));
    }
    out.scale_code = scale.code;
    out.scale = scale.value;
    if (base::is_nan(scale.value)) {
        out.count.poisoned = out.count.elements - seen.nan - seen.inf;
        for (std::uint8_t& code : codes) code = p.poisoned_code;
        return out;
    }
    out.counted_max = seen.finite;
    fractional_steps::quantize_elements(p, x, place, scale, codes, parts, out);
    return out;
}

}  // namespace mx::codec
