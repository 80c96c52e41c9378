// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/saturation_zone.hpp"

#include <algorithm>

#include "libmx/codec/clamp_zone.hpp"

namespace mx::engine {
namespace {

constexpr std::uint32_t largest_finite = base::f32_infinity - 1u;

double magnitude_of(std::uint32_t bits) { return static_cast<double>(base::float_from_bits(bits)); }

int trailing_zeros(std::uint32_t u) { return u == 0 ? 32 : base::floor_log2(u & (0u - u)); }

// The smallest float32 whose code satisfies `condition`, which must be monotone in the magnitude.
template <typename Condition>
std::uint32_t first_magnitude(const codec::block_params& p, bool negative,
                              const Condition& condition) {
    const std::uint32_t sign = negative ? base::f32_sign_mask : 0u;
    std::uint32_t below = 0;
    std::uint32_t above = largest_finite;
    while (above - below > 1) {
        const std::uint32_t middle = below + (above - below) / 2;
        // Draw 0 rounds up least.
        const bool holds =
            condition(format::encode_magnitude(p.element, p.mode, sign | middle, 0, 0));
        (holds ? above : below) = middle;
    }
    return above;
}

saturation_threshold threshold_of(const codec::block_params& p, bool negative) {
    const std::uint32_t limit = p.element.limit(negative);
    const std::uint32_t first = first_magnitude(
        p, negative, [&](const format::encoded& e) { return e.magnitude == limit; });
    const std::uint32_t beyond =
        first_magnitude(p, negative, [](const format::encoded& e) { return e.beyond_max; });
    saturation_threshold t;
    // A threshold is a number of few digits: either the first float32 with the code, or the last
    // one without it.
    t.including = trailing_zeros(first) > trailing_zeros(first - 1);
    t.at = magnitude_of(t.including ? first : first - 1);
    t.largest = magnitude_of(beyond - 1);
    return t;
}

bool decides(const codec::recipe& r) {
    return r.scale_format->power_of_two() && r.by->id == codec::dialect_id::ocp &&
           r.offset == codec::offset_kind::none && !scale::is_random(*r.rule) &&
           !scale::is_search(r.rule->id);
}

}  // namespace

block_extremes extremes_of(std::span<const float> x) {
    block_extremes e;
    // Zero wraps to the largest number and is never the minimum.
    std::uint32_t least[2] = {~0u, ~0u};
    for (const float v : x) {
        const std::uint32_t bits = base::bits_of(v);
        const std::uint32_t magnitude = bits & base::f32_magnitude_mask;
        std::uint32_t& to = least[bits >> 31];
        to = std::min(to, magnitude - 1u);
        e.largest = std::max(e.largest, magnitude);
    }
    e.least_positive = least[0] + 1u;
    e.least_negative = least[1] + 1u;
    return e;
}

std::optional<block_judge> block_judge::of(const codec::recipe& r) {
    if (!decides(r)) return std::nullopt;
    return block_judge(r);
}

block_judge::block_judge(const codec::recipe& r)
    : params_(codec::params_of(r)),
      positive_(threshold_of(params_, false)),
      negative_(threshold_of(params_, true)) {
    for (int i = 0; i < 64; ++i) {
        const auto power = static_cast<float>(base::exact_pow2(lowest_power + i));
        const bool step =
            !same_code(base::bits_of(power / 2), base::bits_of(power), format::e8m0_bias);
        steps_ |= std::uint64_t{step} << i;
    }
    const codec::clamp_zone clamped = codec::clamp_zone_of(r);
    if (clamped.empty()) return;
    // A maximum inside the zone, in the binade [1, 2), gives the scale there: 2^n is 2.
    const auto inside = static_cast<float>((clamped.from + clamped.to) / 2);
    const double s = base::exact_pow2(*scale_exponent(base::bits_of(inside)));
    zone_ = saturation_zone{positive_.at * s / 2, positive_.including, clamped.to / 2,
                            positive_.largest * s / 2};
}

std::optional<int> block_judge::scale_exponent(std::uint32_t amax) const {
    const int code = scale::scale_code(params_.step, amax);
    if (code == format::e8m0_nan) return std::nullopt;
    return code - format::e8m0_bias;
}

block_verdict block_judge::judge(const block_extremes& block) const {
    const std::optional<int> exponent = scale_exponent(block.largest);
    if (!exponent || block.largest == 0) return {};
    const double reciprocal = base::exact_pow2(-*exponent);
    const double p = magnitude_of(block.least_positive) * reciprocal;
    const double n = magnitude_of(block.least_negative) * reciprocal;
    const bool no_p = block.least_positive == 0;
    const bool no_n = block.least_negative == 0;
    return {(no_p || positive_.overflows(p)) && (no_n || negative_.overflows(n)),
            (no_p || positive_.takes_largest(p)) && (no_n || negative_.takes_largest(n))};
}

double block_judge::nearness(const block_extremes& block) const {
    const std::optional<int> exponent = scale_exponent(block.largest);
    if (!exponent || block.largest == 0) return 0;
    const double reciprocal = base::exact_pow2(-*exponent);
    double nearest = 1;  // if the threshold is 0, every element is beyond it
    const auto look_at = [&](std::uint32_t least, const saturation_threshold& t) {
        if (least != 0 && t.at > 0) {
            nearest = std::min(nearest, magnitude_of(least) * reciprocal / t.at);
        }
    };
    look_at(block.least_positive, positive_);
    look_at(block.least_negative, negative_);
    return nearest;
}

std::uint32_t block_judge::code_of(std::uint32_t x, int scale_code) const {
    const int exponent = scale_code - format::e8m0_bias;
    return format::encode_magnitude(params_.element, params_.mode, x, exponent, 0).magnitude;
}

bool block_judge::same_code(std::uint32_t least, std::uint32_t largest, int scale_code) const {
    return code_of(least, scale_code) == code_of(largest, scale_code);
}

bool block_judge::magnitudes_decide() const {
    return params_.mode.how != format::rounding::stochastic && !signs_matter();
}

bool block_judge::signs_matter() const {
    return positive_.at != negative_.at || positive_.including != negative_.including ||
           positive_.largest != negative_.largest;
}

}  // namespace mx::engine
