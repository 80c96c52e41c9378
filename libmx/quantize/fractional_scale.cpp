// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/fractional_scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/encode_quotient.hpp"
#include "libmx/quantize/ggml_ue4m3.hpp"

namespace mx::quantize {
namespace {

constexpr float float_max = std::numeric_limits<float>::max();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float six = 6.0f;

// float32 to UE4M3, to nearest even.
std::uint8_t cast(const block_params& p, float x, bool saturate) {
    return static_cast<std::uint8_t>(
        format::cast_code(p.scale_number, {}, base::bits_of(x), saturate, 0));
}

fractional_scale coded(const block_params& p, std::uint8_t code, float factor = 1) {
    return {code, format::decode_scale(*p.scale_format, code), factor};
}

// A float32 scale; its code is its exponent field.
fractional_scale uncoded(float value, float factor = 1) {
    const std::uint32_t field = (base::bits_of(value) & base::f32_magnitude_mask) >> 23;
    return {static_cast<std::uint8_t>(field), value, factor};
}

fractional_scale exact_ue4m3(const block_params& p, std::uint32_t amax_bits, float target) {
    if (amax_bits >= base::f32_infinity) {
        return coded(p, static_cast<std::uint8_t>(p.scale_number.nan_code));
    }
    // A file may hold a tensor scale of zero.
    if (amax_bits == 0 || p.tensor.decode == 0) return coded(p, 0);
    const format::exact_scale divisor = format::exact_product(p.tensor.decode, target);
    const format::encoded e = format::encode_quotient(p.scale_number, {}, amax_bits, divisor, 0);
    return coded(p, static_cast<std::uint8_t>(e.magnitude));
}

fractional_scale torchao(const block_params& p, float amax) {
    const bool two_level = p.rule == scale::rule_id::two_level;
    const float g = p.tensor.decode;
    float s = amax / six;
    if (two_level) s = s / g;
    // A NaN passes both comparisons, as it passes torch.clamp.
    if (s < 0x1p-6f) s = 0x1p-6f;
    if (s > 448.0f) s = 448.0f;
    fractional_scale chosen = coded(p, cast(p, s, true));
    chosen.factor = two_level ? (1.0f / g) / chosen.value : 1.0f / chosen.value;
    return chosen;
}

fractional_scale te_ue4m3(const block_params& p, float amax) {
    const float encode = p.tensor.stored;
    fractional_scale chosen = coded(p, cast(p, amax * (encode * (1.0f / six)), true));
    const float factor = std::min(1.0f / (chosen.value * p.tensor.decode), float_max);
    chosen.factor = chosen.value == 0 ? 0.0f : factor;
    return chosen;
}

fractional_scale modelopt(const block_params& p, float amax) {
    float s = amax / (six * p.tensor.decode);
    if (s == 0) s = 1.0f;
    fractional_scale chosen = coded(p, cast(p, s, false));
    chosen.factor = chosen.value * p.tensor.decode;
    return chosen;
}

fractional_scale compressed_tensors(const block_params& p, float amax) {
    std::uint8_t code = cast(p, p.tensor.stored * (amax / six), true);
    if (code == 0) code = cast(p, 0.125f, true);
    fractional_scale chosen = coded(p, code);
    chosen.factor = chosen.value / p.tensor.stored;
    return chosen;
}

fractional_scale exact_float32(const block_params& p, std::uint32_t amax_bits) {
    if (amax_bits >= base::f32_infinity) return uncoded(not_a_number);
    if (amax_bits == 0) return uncoded(1.0f);
    if (p.rule == scale::rule_id::amax_pow2) {
        const scale::binade b = scale::binade_of(amax_bits);
        const int up = b.mantissa > p.facts.max_mantissa ? 1 : 0;
        const int exponent = b.exponent - p.facts.max_exponent + up;
        return uncoded(base::exact_pow2f(std::clamp(exponent, -149, 127)));
    }
    return uncoded(std::max(base::float_from_bits(amax_bits) / p.largest, base::exact_pow2f(-149)));
}

fractional_scale te_float32(const block_params& p, float amax) {
    float factor = 1;
    if (amax != 0 && std::isfinite(amax)) {
        factor = std::min(p.largest / amax, float_max);
        if (p.rule == scale::rule_id::amax_pow2) {
            factor = base::float_from_bits(base::bits_of(factor) & base::f32_infinity);
        }
    }
    return uncoded(1.0f / factor, factor);
}

}  // namespace

bool nan_decides(const block_params& p) {
    const two_level_kind convention = p.by->two_level.value;
    return convention != two_level_kind::te && convention != two_level_kind::ggml;
}

fractional_scale choose_scale(const block_params& p, std::uint32_t amax_bits, float target) {
    const float amax = base::float_from_bits(amax_bits);
    const two_level_kind convention = p.by->two_level.value;
    if (!p.scale_format->is_number()) {
        return convention == two_level_kind::te ? te_float32(p, amax) : exact_float32(p, amax_bits);
    }
    switch (convention) {
        case two_level_kind::torchao:
            return torchao(p, amax);
        case two_level_kind::te:
            return te_ue4m3(p, amax);
        case two_level_kind::ggml:
            return coded(p, ggml_ue4m3(amax / six));
        case two_level_kind::modelopt:
            return modelopt(p, amax);
        case two_level_kind::compressed_tensors:
            return compressed_tensors(p, amax);
        case two_level_kind::exact:
        case two_level_kind::none:
            break;
    }
    return exact_ue4m3(p, amax_bits, target);
}

scale_product product_of(const block_params& p, float scale) {
    if (p.by->two_level.value == two_level_kind::compressed_tensors) {
        return {scale / p.tensor.stored, 1.0f};
    }
    return {scale, p.tensor.decode};
}

}  // namespace mx::quantize
