// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/rosetta/producible.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"

namespace mx::rosetta {
namespace {

int magnitude_code(const format::element_format& f, std::uint32_t code) {
    const bool negative = (code & f.sign_bit()) != 0;
    if (f.floating()) return static_cast<int>(code & ~f.sign_bit());
    return static_cast<int>(negative ? static_cast<std::uint32_t>(f.codes()) - code : code);
}

// One element, the maximum of its block, under a recipe: by the reference, since each outcome
// decides which one is asked for next.
class lone_element {
  public:
    explicit lone_element(const codec::recipe& r)
        : format_(*r.element), params_(codec::params_of(r)) {}

    struct outcome {
        int scale_code;  // -1: a scale that E8M0 does not hold
        int magnitude;
    };

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

// The first bits in [low, high) for which `reached` holds, which it does from there on; else high.
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

// The intervals of maxima of a sign (0 or the sign bit) under scale 2^0.
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

producible::producible(const codec::recipe& r) {
    const auto refuse = [&](const char* why) { base::refuse(codec::to_string(r) + ": " + why); };
    if (r.round == format::rounding::stochastic || r.rule->id == scale::rule_id::stochastic) {
        refuse("what it leaves behind depends on random numbers");
    }
    if (r.offset != codec::offset_kind::none) refuse("blocks with an offset are not judged");
    if (!r.scale_format->power_of_two()) refuse("only E8M0 scales are judged");
    if (scale::is_search(r.rule->id)) refuse("a searched scale does not follow from the maximum");

    const lone_element run(r);
    constexpr std::uint32_t sign = base::f32_sign_mask;
    const auto note = [&](std::uint32_t low, std::uint32_t high) {
        for (const bool negative : {false, true}) {
            const std::uint32_t s = negative ? sign : 0u;
            const auto from = run.of(low | s);
            const auto to = run.of(high | s);
            if (from.scale_code == format::e8m0_nan) gives_nan_scale_ = true;
            if (from.scale_code < 0 || from.scale_code == format::e8m0_nan) continue;
            auto& set =
                (negative ? negative_ : positive_)[static_cast<std::size_t>(from.scale_code)];
            // Every code in between is the code of some maximum in between: its own value times
            // the scale.
            for (int m = std::min(from.magnitude, to.magnitude);
                 m <= std::max(from.magnitude, to.magnitude); ++m) {
                set.set(static_cast<std::size_t>(m));
            }
        }
    };
    // Within a binade the scale changes once or twice; bisection finds where.
    const auto walk = [&](auto&& self, std::uint32_t low, std::uint32_t high) -> void {
        if (run.of(low).scale_code == run.of(high).scale_code) return note(low, high);
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
    if (run.of(0x7fc00000u).scale_code == format::e8m0_nan) gives_nan_scale_ = true;
    intervals_ = intervals_of(run, 0);
    if (!std::ranges::equal(intervals_, intervals_of(run, sign), alike)) intervals_.clear();
}

bool producible::can_be(std::uint8_t scale_code, const block_top& top) const {
    if (scale_code == format::e8m0_nan) return gives_nan_scale_;
    if (top.has_nan) return true;
    const auto fits = [&](const std::bitset<256>& own, int largest, const std::bitset<256>& other,
                          int beside) {
        if (!own.test(static_cast<std::size_t>(largest))) return false;
        // The element beside it is no larger than the maximum, whose code is at most the last one.
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
