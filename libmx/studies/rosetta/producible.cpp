// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/rosetta/producible.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/format/decode.hpp"

namespace mx::rosetta {
namespace {

int magnitude_code(const format::element_format& f, std::uint32_t code) {
    const bool negative = (code & f.sign_bit()) != 0;
    if (f.floating()) return static_cast<int>(code & ~f.sign_bit());
    return static_cast<int>(negative ? static_cast<std::uint32_t>(f.codes()) - code : code);
}

constexpr std::uint32_t quiet_nan = 0x7fc00000u;
constexpr float four_target = 4.0f;

// A scale with the smallest and the largest code of block maxima under it.
struct outcome_range {
    int scale_code, least, most;
};

// One element, the maximum of its block, under a recipe. Uses the reference, because each outcome
// determines the next input.
class lone_element {
  public:
    explicit lone_element(const codec::recipe& r)
        : format_(*r.element), params_(codec::params_of(r)) {}

    struct outcome {
        int scale_code;  // -1: a scale without an E8M0 code
        int magnitude;
    };

    int scale_code(std::uint32_t bits) const { return of(bits).scale_code; }

    // For all maxima from `low` to `high`, which must have the same scale.
    outcome_range between(std::uint32_t low, std::uint32_t high) const {
        const outcome from = of(low), to = of(high);
        const auto [least, most] = std::minmax({from.magnitude, to.magnitude});
        return {from.scale_code, least, most};
    }

    outcome of(std::uint32_t bits) const {
        const float x = base::float_from_bits(bits);
        std::uint8_t code = 0;
        codec::block_place place;
        place.cols = 1;
        const float scale =
            codec::quantize_block(params_, std::span(&x, 1), place, std::span(&code, 1)).scale;
        return {code_of(scale), magnitude_code(format_, code)};
    }

  private:
    static int code_of(float scale) {
        if (std::isnan(scale)) return format::e8m0_nan;
        int exponent = 0;
        if (!(scale > 0) || std::isinf(scale) || std::frexp(scale, &exponent) != 0.5f) return -1;
        const int code = exponent - 1 + format::e8m0_bias;
        return code < 0 || code > format::e8m0_max ? -1 : code;
    }

    const format::element_format& format_;
    codec::block_params params_;
};

// The same under a scale with a mantissa, for a maximum that becomes `target` (0: the largest
// value): four-over-six chooses between two scales by the other elements.
class block_maximum {
  public:
    block_maximum(const codec::recipe& r, float target)
        : format_(*r.element),
          params_(codec::params_of(r, {base::bits_of(codec::outer_rule_of(r).range)})),
          target_(target == 0 ? params_.largest : target) {}

    int scale_code(std::uint32_t bits) const {
        return scale_of(bits & base::f32_magnitude_mask).code;
    }

    outcome_range between(std::uint32_t low, std::uint32_t high) const {
        const std::uint32_t sign = low & base::f32_sign_mask;
        const codec::float_scale scale = scale_of(low & base::f32_magnitude_mask);
        if (base::is_nan(scale.value)) return {scale.code, 0, 0};
        const std::uint32_t first = low & base::f32_magnitude_mask;
        const std::uint32_t last = high & base::f32_magnitude_mask;
        // Other outer scales move the ends by a few roundings.
        const auto below = std::max(first, rounding_reach) - rounding_reach;
        const bool finite = last < base::f32_infinity - rounding_reach;
        const auto [least, most] = std::minmax(
            {magnitude((first == 0 ? 0 : below) | sign, scale),
             magnitude((finite && last != 0 ? last + rounding_reach : last) | sign, scale)});
        return {scale.code, least, most};
    }

    // The code of the maximum without rounding of the scale.
    int normal_top() const { return between(base::bits_of(target_), base::bits_of(target_)).most; }

  private:
    static constexpr std::uint32_t rounding_reach = 8;  // ulps

    codec::float_scale scale_of(std::uint32_t amax) const {
        const bool ignored = amax > base::f32_infinity && !codec::nan_decides(params_);
        return codec::choose_scale(params_, ignored ? 0 : amax, target_);
    }

    int magnitude(std::uint32_t bits, const codec::float_scale& scale) const {
        const float x = base::float_from_bits(bits);
        const codec::float_scale_encoder encoder(params_, scale);
        return magnitude_code(
            format_, std::isfinite(x) ? encoder.encode(x, 0).code : encoder.special_code(x));
    }

    const format::element_format& format_;
    codec::block_params params_;
    float target_;
};

// The smallest bits in [low, high) for which `reached` is true, or high. `reached` must be
// monotone.
template <typename Reached>
std::uint32_t first_of(std::uint32_t low, std::uint32_t high, Reached reached) {
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (reached(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

// The intervals of maxima with one sign (0 or the sign bit) under scale 2^0.
std::vector<top_interval> intervals_of(const lone_element& run, std::uint32_t sign) {
    constexpr std::uint32_t low = (127u - 20u) << 23, high = (127u + 20u) << 23;
    const auto from_scale = [&](int code) {
        return first_of(low, high,
                        [&](std::uint32_t x) { return run.of(x | sign).scale_code >= code; });
    };
    const std::uint32_t end = from_scale(format::e8m0_bias + 1);
    std::vector<top_interval> intervals;
    for (std::uint32_t at = from_scale(format::e8m0_bias); at < end;) {
        const int code = run.of(at | sign).magnitude;
        const std::uint32_t next =
            first_of(at, end, [&](std::uint32_t x) { return run.of(x | sign).magnitude > code; });
        intervals.push_back({code, std::log2(static_cast<double>(base::float_from_bits(next)) /
                                             static_cast<double>(base::float_from_bits(at)))});
        at = next;
    }
    return intervals;
}

bool alike(const top_interval& a, const top_interval& b) {
    return a.code == b.code && a.octaves == b.octaves;
}

}  // namespace

block_top top_of(const format::element_format& f, std::span<const std::uint8_t> codes) {
    block_top top;
    for (const std::uint8_t code : codes) {
        const int magnitude = magnitude_code(f, code);
        int& side = (code & f.sign_bit()) != 0 ? top.negative : top.positive;
        side = std::max(side, magnitude);
        top.has_nan = top.has_nan || (f.floating() && magnitude > static_cast<int>(f.max_code()));
    }
    return top;
}

producible::producible(const codec::recipe& r) : scale_format_(r.scale_format) {
    const auto refuse = [&](const char* why) { base::refuse(codec::to_string(r) + ": " + why); };
    if (r.round == format::rounding::stochastic || scale::is_random(*r.rule)) {
        refuse("what it leaves behind depends on random numbers");
    }
    if (r.offset != codec::offset_kind::none) refuse("blocks with an offset are not judged");
    if (!r.scale_format->has_codes()) refuse("float32 scales are not judged");
    if (scale::is_search(r.rule->id)) refuse("a searched scale does not follow from the maximum");

    if (r.scale_format->is_number()) {
        const block_maximum six(r, 0);
        fill(six);
        if (r.select == codec::four_over_six::none) return;
        const block_maximum four(r, four_target);
        fill(four);
        const auto value = [&](int code) {
            return format::decode_scale(*r.scale_format, static_cast<std::uint32_t>(code));
        };
        int last = static_cast<int>(r.scale_format->number.max_code());
        const float reach = value(last) / 1.5f;
        while (value(last) > reach) --last;
        alternatives_ = {four.normal_top(), six.normal_top(), last};
        return;
    }
    const lone_element run(r);
    fill(run);
    intervals_ = intervals_of(run, 0);
    const auto negative = intervals_of(run, base::f32_sign_mask);
    if (!std::ranges::equal(intervals_, negative, alike)) intervals_.clear();
}

template <typename Run>
void producible::fill(const Run& run) {
    constexpr std::uint32_t sign = base::f32_sign_mask;
    const int nan_code = nan_code_of(*scale_format_);
    const auto note = [&](std::uint32_t low, std::uint32_t high) {
        for (const bool negative : {false, true}) {
            const std::uint32_t s = negative ? sign : 0u;
            const auto [code, least, most] = run.between(low | s, high | s);
            if (code == nan_code) gives_nan_scale_ = true;
            if (code < 0 || code == nan_code) continue;
            auto& set = (negative ? negative_ : positive_)[static_cast<std::size_t>(code)];
            // Every code in between is that of some maximum in between: its value times the scale.
            for (int m = least; m <= most; ++m) set.set(static_cast<std::size_t>(m));
        }
    };
    // Within a binade the scale changes a few times; bisection finds the changes.
    const auto walk = [&](auto&& self, std::uint32_t low, std::uint32_t high) -> void {
        if (run.scale_code(low) == run.scale_code(high)) return note(low, high);
        const std::uint32_t middle = low + (high - low) / 2;
        self(self, low, middle);
        self(self, middle + 1, high);
    };
    note(0, 0);
    for (int bit = 0; bit < 23; ++bit) walk(walk, 1u << bit, (2u << bit) - 1);
    for (std::uint32_t field = 1; field < 255; ++field) {
        walk(walk, field << 23, (field << 23) + base::f32_mantissa_mask);
    }
    note(base::f32_infinity, base::f32_infinity);
    const int of_nan = run.scale_code(quiet_nan);
    if (of_nan == nan_code) gives_nan_scale_ = true;
    if (of_nan == nan_code || scale_format_->power_of_two()) return;
    // If a NaN leaves the scale finite, the other elements can have any code.
    for (auto* side : {&positive_, &negative_}) (*side)[static_cast<std::size_t>(of_nan)].set();
}

bool producible::can_be(std::uint8_t scale_code, const block_top& top) const {
    if (scale_code == nan_code_of(*scale_format_)) return gives_nan_scale_;
    if (top.has_nan) return true;
    const auto fits = [&](const std::bitset<256>& own, int largest, const std::bitset<256>& other,
                          int beside) {
        if (!own.test(static_cast<std::size_t>(largest))) return false;
        // The largest element of the other sign is at most the maximum, so its code is at most the
        // last possible one.
        for (std::size_t m = 255; m > 0; --m) {
            if (other.test(m)) return beside <= static_cast<int>(m);
        }
        return beside == 0;
    };
    const auto& up = positive_[scale_code];
    const auto& down = negative_[scale_code];
    return fits(up, top.positive, down, top.negative) || fits(down, top.negative, up, top.positive);
}

}  // namespace mx::rosetta
