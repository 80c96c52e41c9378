// SPDX-License-Identifier: Apache-2.0
// Elements under a scale that is no power of two: to codes and back, for host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/fractional_scale.hpp"
#include "libmx/format/encode_quotient.hpp"

namespace mx::codec {

/// Elements of a block under a chosen scale.
class fractional_encoder {
  public:
    MX_HD fractional_encoder(const block_params& p, const fractional_scale& scale,
                             const block_place& place)
        : p_(p), scale_(scale), place_(place) {
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
    /// The finite `x` at `position` of the block.
    MX_HD_CALL element encode(float x, int position) const {
        const std::uint32_t random = draw(position);
        const std::uint32_t bits = base::bits_of(x);
        const bool negative = (bits & base::f32_sign_mask) != 0;
        element out{};
        out.exact = zero_ ? format::encoded{0, 0, false, negative}
                          : format::encode_quotient(p_.element, p_.mode, bits, exact_, random);
        if (p_.by->two_level.value == two_level_kind::exact) {
            out.magnitude = out.exact.magnitude;
            out.code =
                static_cast<std::uint8_t>(format::with_sign(p_.element, out.magnitude, negative));
        } else {
            out.code = dialect_code(x, random);
            // Floating formats only.
            out.magnitude = out.code & ((1u << (p_.element.bits - 1)) - 1u);
        }
        out.value = value_ * static_cast<double>(p_.value[out.code]);
        return out;
    }

    /// The code of a NaN or Inf among elements that keep a scale.
    MX_HD std::uint8_t special_code(float x) const { return dialect_code(x, 0); }

  private:
    MX_HD std::uint32_t draw(int position) const {
        if (p_.mode.how != format::rounding::stochastic) return 0;
        return base::random_u32({p_.seed, place_.tensor_id}, place_.index(position));
    }

    // The code of the nearest value by float32 distance, the first of equals, as ggml searches:
    // positive values, then negative ones, whose zero never wins.
    MX_HD std::uint8_t nearest_by_search(float x) const {
        std::uint8_t best = 0;
        float best_error = std::abs(p_.value[0] * scale_.value - x);
        for (std::uint8_t code = 1; code < 16; ++code) {
            const float error = std::abs(p_.value[code] * scale_.value - x);
            if (error < best_error) {
                best = code;
                best_error = error;
            }
        }
        return best;
    }

    // The code of x under float32 arithmetic: y = x times (or divided by) the factor, rounded.
    MX_HD std::uint8_t dialect_code(float x, std::uint32_t draw) const {
        const two_level_kind convention = p_.by->two_level.value;
        if (convention == two_level_kind::ggml) return nearest_by_search(x);
        const bool divides = convention == two_level_kind::modelopt ||
                             convention == two_level_kind::compressed_tensors;
        const float y = divides ? x / scale_.factor : x * scale_.factor;
        if (base::is_nan(y)) return p_.poisoned_code;
        // An infinite y counts as far beyond the largest value.
        const format::encoded e =
            format::encode_magnitude(p_.element, p_.mode, base::bits_of(y), 0, draw);
        // Both take the sign from y < 0 (or sign(y)), which loses that of a zero.
        const bool negative = e.negative && !(divides && y == 0);
        return static_cast<std::uint8_t>(format::with_sign(p_.element, e.magnitude, negative));
    }

    const block_params& p_;
    const fractional_scale& scale_;
    const block_place& place_;
    bool zero_;  ///< S is 0 (or no number, from a file): y is undefined, q as the dialect says
    format::exact_scale exact_{};
    double value_ = 0;
};

/// Codes of a block as the dequantized values that its dialect returns. ocp: the exact product
/// rounded once. Others: float32(q * float32(s g)), for compressed-tensors float32(q * float32(s /
/// G)).
class fractional_decoder {
  public:
    /// `scale` is block_stats::scale.
    MX_HD fractional_decoder(const block_params& p, float scale) : p_(p) {
        const scale_product product = product_of(p, scale);
        exact_ = static_cast<double>(product.block) * static_cast<double>(product.tensor);
        rounded_ = product.block * product.tensor;
    }

    MX_HD float decode(std::uint8_t code) const {
        const float q = p_.value[code];
        const two_level_kind convention = p_.by->two_level.value;
        if (convention == two_level_kind::exact) {
            return static_cast<float>(exact_ * static_cast<double>(q));
        }
        // modelopt's table of values has one zero, without a sign.
        const bool one_zero = convention == two_level_kind::modelopt;
        return (one_zero && q == 0 ? 0.0f : q) * rounded_;
    }

  private:
    const block_params& p_;
    double exact_;
    float rounded_;
};

}  // namespace mx::codec
