// SPDX-License-Identifier: Apache-2.0
// Elements under a scale that is not a power of two: to codes and back, for host and device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/encode_quotient.hpp"

namespace mx::codec {

// The scale of a block if scales are not powers of two: UE4M3 with or without a tensor scale
// (NVFP4), and float32 (FP8 block scaling). For host and device.

/// A chosen scale; `value` is NaN for a poisoned block.
struct float_scale {
    std::uint8_t code;  ///< UE4M3 code; for a float32 scale its exponent field (255: NaN)
    float value;        ///< the block's own scale, without the tensor's
    float factor;       ///< the factor or divisor of the dialect's float32 arithmetic
};

/// Whether the convention of `p` takes a NaN in a block as its maximum (else NaN is skipped).
MX_HD inline bool nan_decides(const block_params& p) {
    const two_level_kind convention = p.by->two_level.value;
    return convention != two_level_kind::te && convention != two_level_kind::ggml;
}

/// Whether a convention divides elements by a float32 (else it multiplies, or is exact).
MX_HD inline bool divides_elements(two_level_kind convention) {
    return convention == two_level_kind::modelopt ||
           convention == two_level_kind::compressed_tensors ||
           convention == two_level_kind::quark || convention == two_level_kind::alto ||
           convention == two_level_kind::torchao_divides;
}

/// The sign of elements that become zero.
MX_HD inline zero_sign sign_of_zero(two_level_kind convention) {
    switch (convention) {
        case two_level_kind::modelopt:
        case two_level_kind::compressed_tensors:
            return zero_sign::input_plus;  // it follows from y < 0, or sign(y)
        case two_level_kind::quark:
            return zero_sign::plus;
        default:
            return zero_sign::kept;
    }
}

namespace float_scale_steps {

inline constexpr float six = 6.0f;

// Preserves NaN.
MX_HD inline float no_larger_than_float_max(float x) {
    return std::min(x, std::numeric_limits<float>::max());
}

// float32 to UE4M3, to nearest even.
MX_HD inline std::uint8_t cast(const block_params& p, float x, bool saturate) {
    return static_cast<std::uint8_t>(
        format::cast_code(p.scale_number, {}, base::bits_of(x), saturate, 0));
}

// The scale of a code; if it is zero, Quark divides by the float32 epsilon.
MX_HD inline float_scale coded(const block_params& p, std::uint8_t code, float factor = 1) {
    const float value = format::decode_scale(*p.scale_format, code);
    const bool replaced = value == 0 && p.by->two_level.value == two_level_kind::quark;
    return {code, replaced ? 0x1p-23f : value, factor};
}

// A float32 scale; its code is its exponent field.
MX_HD inline float_scale uncoded(float value, float factor = 1) {
    const std::uint32_t field = (base::bits_of(value) & base::f32_magnitude_mask) >> 23;
    return {static_cast<std::uint8_t>(field), value, factor};
}

MX_HD inline float_scale exact_number(const block_params& p, std::uint32_t amax_bits,
                                      float target) {
    if (amax_bits >= base::f32_infinity) {
        return coded(p, static_cast<std::uint8_t>(p.scale_number.nan_code));
    }
    // A file may contain a tensor scale of zero.
    if (amax_bits == 0 || p.tensor.decode == 0) return coded(p, 0);
    const format::exact_scale divisor = format::exact_product(p.tensor.decode, target);
    const format::encoded e = format::encode_quotient(p.scale_number, {}, amax_bits, divisor, 0);
    return coded(p, static_cast<std::uint8_t>(e.magnitude));
}

MX_HD inline float_scale torchao(const block_params& p, float amax) {
    const bool two_level = p.has_tensor_scale;
    const float g = p.tensor.decode;
    float s = amax / six;
    if (two_level) s = s / g;
    // A NaN passes both comparisons, as it does in torch.clamp.
    if (s < 0x1p-6f) s = 0x1p-6f;
    if (s > 448.0f) s = 448.0f;
    float_scale chosen = coded(p, cast(p, s, true));
    if (p.by->two_level.value == two_level_kind::torchao_divides) {
        chosen.factor = two_level ? g * chosen.value : chosen.value;
        return chosen;
    }
    chosen.factor = two_level ? (1.0f / g) / chosen.value : 1.0f / chosen.value;
    return chosen;
}

MX_HD inline float_scale te_number(const block_params& p, float amax, float target) {
    const float encode = p.tensor.stored;
    float s = amax * (encode * (1.0f / six));
    if (p.select != four_over_six::none) {
        s = amax / six * encode;
        if (target != p.largest) s = 1.5f * s;
    }
    float_scale chosen = coded(p, cast(p, s, true));
    const float factor = no_larger_than_float_max(1.0f / (chosen.value * p.tensor.decode));
    chosen.factor = chosen.value == 0 && !follows_te_reference(p) ? 0.0f : factor;
    return chosen;
}

MX_HD inline float_scale quark(const block_params& p, float amax) {
    if (base::is_nan(amax)) return coded(p, 0xfc, format::decode_scale(*p.scale_format, 0xfc));
    float_scale chosen = coded(p, cast(p, amax / six, true));
    chosen.factor = chosen.value;
    return chosen;
}

MX_HD inline float_scale alto(const block_params& p, float amax) {
    const float least = p.scale_number.clamps_negative ? 0x1p-17f : 0x1p-6f;
    float s = (p.has_tensor_scale ? amax / p.tensor.decode : amax) / six;
    // A NaN becomes the smallest value, too.
    if (!(s > least)) s = least;
    float_scale chosen = coded(p, cast(p, s, true));
    chosen.factor = chosen.value * p.tensor.decode;
    return chosen;
}

MX_HD inline float_scale modelopt(const block_params& p, float amax) {
    float s = amax / (six * p.tensor.decode);
    if (s == 0) s = 1.0f;
    float_scale chosen = coded(p, cast(p, s, false));
    chosen.factor = chosen.value * p.tensor.decode;
    return chosen;
}

MX_HD inline float_scale compressed_tensors(const block_params& p, float amax) {
    std::uint8_t code = cast(p, p.tensor.stored * (amax / six), true);
    if (code == 0) code = cast(p, 0.125f, true);
    float_scale chosen = coded(p, code);
    chosen.factor = chosen.value / p.tensor.stored;
    return chosen;
}

MX_HD inline float_scale exact_float32(const block_params& p, std::uint32_t amax_bits) {
    if (amax_bits >= base::f32_infinity) return uncoded(base::quiet_nan());
    if (amax_bits == 0) return uncoded(1.0f);
    if (p.float_power) {
        const int exponent = scale::scale_exponent(p.step, amax_bits);
        return uncoded(base::exact_pow2f(std::clamp(exponent, -149, 127)));
    }
    return uncoded(std::max(base::float_from_bits(amax_bits) / p.largest, base::exact_pow2f(-149)));
}

MX_HD inline float_scale te_float32(const block_params& p, float amax) {
    float factor = 1;
    if (amax != 0 && base::is_finite(amax)) {
        factor = no_larger_than_float_max(p.largest / amax);
        if (p.float_power) {
            factor = base::float_from_bits(base::bits_of(factor) & base::f32_infinity);
        }
    }
    return uncoded(1.0f / factor, factor);
}

}  // namespace float_scale_steps

/// The scale of a block whose maximum has the float32 bits `amax_bits`, including Inf and NaN.
/// `target` is the element that the maximum should become: 4 for four-over-six, `p.largest`
/// otherwise; conventions other than exact and te ignore it.
///
/// UE4M3, with g the outer scale (1 without one), all operations in float32 and left to right:
/// - exact: s = e4m3(amax / (target g)), the exact quotient rounded once, at most 448; a block
///   with NaN or Inf gets code 127. UE5M3 likewise: at most 114688, code 255;
/// - torchao: s = e4m3(clamp(amax / 6 / g, 2^-6, 448)); factor (1 / g) / s
///   (pytorch/ao@36027d8);
/// - te: s = e4m3(amax * (S * (1 / 6))), S = 1 / g as stored; factor min(1 / (s * (1 / S)), largest
///   float32), 0 for s = 0 (NVIDIA/TransformerEngine@d0067d0). Its reference
///   (follows_te_reference): the largest float32 for s = 0; four-over-six: b = amax / 6 * S, s =
///   e4m3(b), or e4m3(1.5 * b) if the maximum becomes 4. UE5M3 the same
///   (timmoon10/TransformerEngine@c2d9c99, branch of #3325; saturation is assumed);
/// - ggml: s from its own conversion, see ggml_ue4m3.hpp (ggml-org/llama.cpp@0096646);
/// - modelopt: s = e4m3(amax / (6 * g)) without saturation, 1 for a zero; divisor s * g
///   (NVIDIA/TensorRT-Model-Optimizer@5a4242f);
/// - compressed-tensors: s = e4m3(G * (amax / 6)), G as stored, 2^-3 for a zero; divisor s / G
///   (vllm-project/compressed-tensors@ac8e2ba);
/// - quark, UE5M3 only: s = ue5m3(amax / 6), 98304 for a NaN; divisor s, 2^-23 for s = 0 (amd-quark
///   0.13);
/// - alto: s = ue5m3(clamp(amax / g / 6, 2^-17, 114688)), 2^-17 for a NaN; divisor s * g; E4M3 in
///   [2^-6, 448] (AMD-AGI/ALTO@74e251d).
///
/// float32:
/// - exact: S = float32(amax / M), at least 2^-149; amax-pow2: 2^ceil(log2(amax / M)) of the exact
///   quotient; 1 for a block of zeros; NaN for one with NaN or Inf;
/// - te: factor M / amax, the largest float32 if that overflows, for amax-pow2 with its mantissa
///   cleared; 1 for amax 0 or Inf; S = 1 / factor (NVIDIA/TransformerEngine@d0067d0).
MX_HD_CALL inline float_scale choose_scale(const block_params& p, std::uint32_t amax_bits,
                                           float target) {
    using namespace float_scale_steps;
    const float amax = base::float_from_bits(amax_bits);
    const two_level_kind convention = p.by->two_level.value;
    if (!p.scale_format->is_number()) {
        return convention == two_level_kind::te ? te_float32(p, amax) : exact_float32(p, amax_bits);
    }
    switch (convention) {
        case two_level_kind::torchao:
        case two_level_kind::torchao_divides:
            return torchao(p, amax);
        case two_level_kind::te:
            return te_number(p, amax, target);
        case two_level_kind::quark:
            return quark(p, amax);
        case two_level_kind::alto:
            return alto(p, amax);
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
    return exact_number(p, amax_bits, target);
}

/// The scale as a product of two float32 factors, S = block * tensor exactly.
struct scale_product {
    float block;
    float tensor;
};
MX_HD inline scale_product product_of(const block_params& p, float scale) {
    if (p.by->two_level.value == two_level_kind::compressed_tensors) {
        return {scale / p.tensor.stored, 1.0f};
    }
    return {scale, p.tensor.decode};
}

/// Elements of a block under a chosen scale. Use a local object: nothing can alias its members
/// then, so they stay in registers.
class float_scale_encoder {
  public:
    MX_HD float_scale_encoder(const block_params& p, const float_scale& scale)
        : value_of_code_(p.value),
          f_(p.element),
          mode_(p.mode),
          convention_(p.by->two_level.value),
          scale_(scale),
          poisoned_code_(p.poisoned_code) {
        const scale_product product = product_of(p, scale.value);
        zero_ = !(product.block > 0 && product.tensor > 0 && base::is_finite(product.block) &&
                  base::is_finite(product.tensor));
        if (zero_) return;
        exact_ = format::exact_product(product.block, product.tensor);
        value_ = format::value_of(exact_);
    }

    struct element {
        format::encoded exact;  ///< x / S rounded exactly: decides what overflows and clamps
        std::uint8_t code;
        std::uint32_t magnitude;  ///< of the code
        double value;             ///< the exact S * q
    };
    /// Encodes the finite `x`; `draw` is used by stochastic rounding only.
    MX_HD element encode(float x, std::uint32_t draw) const {
        const std::uint32_t bits = base::bits_of(x);
        const bool negative = (bits & base::f32_sign_mask) != 0;
        element out{};
        out.exact = zero_ ? format::encoded{0, 0, false, negative}
                          : format::encode_quotient(f_, mode_, bits, exact_, draw);
        if (convention_ == two_level_kind::exact) {
            out.magnitude = out.exact.magnitude;
            out.code = static_cast<std::uint8_t>(format::with_sign(f_, out.magnitude, negative));
        } else {
            out.code = dialect_code(x, draw);
            // Floating formats only.
            out.magnitude = out.code & ((1u << (f_.bits - 1)) - 1u);
        }
        out.value = value_ * static_cast<double>(value_of_code_[out.code]);
        return out;
    }

    /// S, exact; 0 if q is not x / S but defined by the dialect.
    MX_HD double scale() const { return value_; }

    /// The code of a NaN or Inf whose block keeps a scale.
    MX_HD std::uint8_t special_code(float x) const { return dialect_code(x, 0); }

  private:
    // The code of the nearest value by float32 distance, the first of equal ones, in the order of
    // ggml's search: positive values, then negative ones, whose zero is never chosen.
    MX_HD std::uint8_t nearest_by_search(float x) const {
        std::uint8_t best = 0;
        float best_error = std::abs(value_of_code_[0] * scale_.value - x);
        for (std::uint8_t code = 1; code < 16; ++code) {
            const float error = std::abs(value_of_code_[code] * scale_.value - x);
            if (error < best_error) {
                best = code;
                best_error = error;
            }
        }
        return best;
    }

    // The code of x under float32 arithmetic: y = x times (or divided by) the factor, rounded.
    MX_HD std::uint8_t dialect_code(float x, std::uint32_t draw) const {
        if (convention_ == two_level_kind::ggml) return nearest_by_search(x);
        const float y = divides_elements(convention_) ? x / scale_.factor : x * scale_.factor;
        if (base::is_nan(y)) return poisoned_code_;
        // An infinite y is treated as far beyond the largest value.
        const format::encoded e = format::encode_magnitude(f_, mode_, base::bits_of(y), 0, draw);
        const zero_sign zeros = sign_of_zero(convention_);
        bool negative = e.negative;
        if (y == 0) negative = negative && zeros == zero_sign::kept;
        if (e.magnitude == 0) negative = negative && zeros != zero_sign::plus;
        return static_cast<std::uint8_t>(format::with_sign(f_, e.magnitude, negative));
    }

    const float* value_of_code_;
    format::element_params f_;
    format::rounding_mode mode_;
    two_level_kind convention_;
    float_scale scale_;
    std::uint8_t poisoned_code_;
    bool zero_;  ///< S is 0 (or not a number, from a file): y is undefined, q is defined by the
                 ///< dialect
    format::exact_scale exact_{};
    double value_ = 0;
};

/// The value of a code that stands for `q`, with NaN that is the same everywhere: that of q, which
/// may have a sign, else the positive quiet one. Arithmetic on devices gives NaN other bits.
MX_HD inline float with_nan_of(float q, float value) {
    return value == value ? value : q == q ? base::quiet_nan() : q;
}

/// Decodes a block to the values that its dialect returns. ocp: the exact product rounded once.
/// Others: float32(q * float32(s g)), for compressed-tensors float32(q * float32(s / G)); te's
/// reference: float32(q * float32(float32(s amax) * float32(1 / (m M)))).
class float_scale_decoder {
  public:
    /// `scale` is block_stats::scale.
    MX_HD float_scale_decoder(const block_params& p, float scale)
        : value_of_code_(p.value), convention_(p.by->two_level.value) {
        const scale_product product = product_of(p, scale);
        exact_ = static_cast<double>(product.block) * static_cast<double>(product.tensor);
        rounded_ = product.block * product.tensor;
        if (follows_te_reference(p) && p.tensor.amax != 0) {
            rounded_ = scale * p.tensor.amax * (1.0f / p.outer.range);
        }
    }

    MX_HD float decode(std::uint8_t c) const {
        return with_nan_of(value_of_code_[c], static_cast<float>(decode_unrounded(c)));
    }
    /// The same before an exact product is rounded to float32.
    MX_HD double decode_unrounded(std::uint8_t code) const {
        const float q = value_of_code_[code];
        if (convention_ == two_level_kind::exact) return exact_ * static_cast<double>(q);
        // modelopt's table of values has one zero, without a sign.
        const bool one_zero = convention_ == two_level_kind::modelopt;
        return static_cast<double>((one_zero && q == 0 ? 0.0f : q) * rounded_);
    }

  private:
    const float* value_of_code_;
    two_level_kind convention_;
    double exact_;
    float rounded_;
};

/// The same under a scale that is a power of two, and an offset.
class power_decoder {
  public:
    MX_HD power_decoder(const block_params& p, float scale, std::uint16_t offset)
        : p_(p),
          narrow_(p.by->arithmetic.value == element_kind::bfloat16),
          scale_(static_cast<double>(scale)),
          offset_(static_cast<double>(base::float_from_half(offset))) {}

    /// Products of float32 numbers are exact in float64, so that T rounds them once.
    template <typename T>
    MX_HD T value(std::uint8_t code) const {
        const double product = scale_ * static_cast<double>(p_.value[code]);
        // Adding +0 would lose the sign of a negative zero.
        const T d = static_cast<T>(p_.has_offset ? offset_ + product : product);
        return narrow_ ? static_cast<T>(base::rounded_to_bf16(static_cast<float>(d))) : d;
    }

  private:
    const block_params& p_;
    bool narrow_;
    double scale_, offset_;
};

}  // namespace mx::codec
