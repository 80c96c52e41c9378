// SPDX-License-Identifier: Apache-2.0
// The steps of quantizing a block under an E8M0 scale in exact arithmetic, for host and device. The
// reference (block_kernel.cpp) executes them element by element, a GPU with one lane for several
// elements (cuda/lane_body.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/block/exact_totals.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::codec {

/// Counts and extremes of some elements of a block.
struct block_survey {
    std::uint32_t nan = 0;
    std::uint32_t inf = 0;
    std::uint32_t amax = 0;     ///< magnitude bits; above f32_infinity if there is a NaN
    std::uint32_t least = ~0u;  ///< smallest non-zero magnitude, minus one
    float low = std::numeric_limits<float>::infinity();
    float high = -std::numeric_limits<float>::infinity();

    MX_HD void add(float v) {
        const std::uint32_t magnitude = base::bits_of(v) & base::f32_magnitude_mask;
        nan += magnitude > base::f32_infinity ? 1u : 0u;
        inf += magnitude == base::f32_infinity ? 1u : 0u;
        amax = std::max(amax, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the largest number
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    /// Magnitude bits of the smallest non-zero element, 0 if there is none.
    MX_HD std::uint32_t amin() const { return least + 1u; }
};

/// fp16(max/2 + min/2): halving first prevents overflow of the sum. A zero is +0.
MX_HD inline std::uint16_t offset_of(const block_survey& s) {
    const std::uint16_t half = base::half_saturated(0.5f * s.high + 0.5f * s.low);
    return half == 0x8000u ? std::uint16_t{0} : half;
}

/// float32((max - min) / 2) with one rounding.
MX_HD inline float half_range(const block_survey& s) {
    const float range = s.high - s.low;
    return base::bits_of(range) == base::f32_infinity ? 0.5f * s.high - 0.5f * s.low : 0.5f * range;
}

/// Magnitude bits of float32(x - offset); range=max takes the largest.
MX_HD inline std::uint32_t distance_bits(float x, float offset) {
    return base::bits_of(x - offset) & base::f32_magnitude_mask;
}

/// Sets the figures that follow from the survey of a block of `elements` values. Returns false if a
/// NaN or Inf poisons it; otherwise chooses the offset.
MX_HD inline bool begin_block(const ocp_params& p, const block_survey& seen, std::uint32_t elements,
                              block::block_stats& out) {
    out.count.elements = elements;
    out.count.nan = seen.nan;
    out.count.inf = seen.inf;
    out.is.zero = seen.amax == 0;
    out.x_max = seen.amax;
    out.x_min = seen.amin();
    if (seen.amax >= base::f32_infinity) {
        out.scale_code = format::e8m0_nan;
        out.amax = seen.amax;
        out.count.poisoned = elements - seen.nan - seen.inf;
        return false;
    }
    out.offset = p.has_offset ? offset_of(seen) : std::uint16_t{0};
    return true;
}

/// Chooses the scale from `ruled`, the rule's input. Returns false if it is NaN: a finite maximum
/// rounds beyond every scale.
MX_HD inline bool choose_scale(const ocp_params& p, const block_survey& seen, std::uint32_t ruled,
                               block::block_stats& out) {
    out.amax = ruled;
    const int code = scale::scale_code(p.step, ruled);
    out.scale_code = static_cast<std::uint8_t>(code);
    if (code == format::e8m0_nan) {
        out.count.poisoned = out.count.elements;
        return false;
    }
    out.counted_max = seen.amax;
    return true;
}

/// The exponent of the scale that choose_scale chose.
MX_HD inline int scale_exponent(const block::block_stats& s) {
    return static_cast<int>(s.scale_code) - format::e8m0_bias;
}

/// The scale with this code as a float32; the same NaN on every CPU and GPU.
MX_HD inline float scale_of_code(std::uint8_t code) {
    constexpr std::uint32_t quiet_nan = 0x7fc00000u;
    return code == format::e8m0_nan ? base::float_from_bits(quiet_nan)
                                    : base::exact_pow2f(static_cast<int>(code) - format::e8m0_bias);
}

/// Encodes elements x - offset under a power-of-two scale and tallies them. Use a local object:
/// nothing can alias its members then, so they stay in registers.
class element_encoder {
  public:
    MX_HD element_encoder(const ocp_params& p, int scale_exponent, float offset)
        : f_(p.element),
          mode_(p.mode),
          value_(p.value),
          exponent_(scale_exponent),
          offset_(offset),
          scale_(base::exact_pow2(scale_exponent)) {}

    struct element {
        std::uint8_t code;
        block::error_part part;
        double product;  ///< S * q
    };

    MX_HD element encode(float x, std::uint32_t draw, element_tally& tally) const {
        const std::uint32_t bits = base::bits_of(x - offset_);
        const format::encoded e = format::encode_magnitude(f_, mode_, bits, exponent_, draw);
        const bool nonzero = (bits & base::f32_magnitude_mask) != 0;
        const auto code = static_cast<std::uint8_t>(format::with_sign(f_, e.magnitude, e.negative));
        const double product = scale_ * static_cast<double>(value_[code]);
        // With an offset, q = 0 is the offset itself.
        const bool gone =
            offset_ == 0 ? e.magnitude == 0 : x != 0 && static_cast<double>(offset_) + product == 0;
        return {code, tally.add(f_, nonzero, e, e.magnitude, gone), product};
    }

  private:
    format::element_params f_;
    format::rounding_mode mode_;
    const float* value_;
    int exponent_;
    float offset_;
    double scale_;
};

/// d - x = (O + product) - x without cancellation for a large offset: x - O is computed exactly as
/// a sum of two doubles (Knuth's TwoSum), and S*q is near its larger part.
MX_HD inline double error_of(double x, double offset, double product) {
    const double difference = x - offset;
    const double x_part = difference + offset;
    const double rest = (x - x_part) - (offset - (x_part - difference));
    return (product - difference) - rest;
}

}  // namespace mx::codec
