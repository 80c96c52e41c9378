// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/rounding.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {
namespace {

namespace mp = boost::multiprecision;

// y in quanta: whole + rest/denominator with 0 <= rest < denominator.
struct position {
    integer whole;
    integer rest;
};

position in_quanta(const integer& numerator, const integer& denominator, int quantum_exponent) {
    // y / 2^quantum_exponent; all formats have quantum_exponent <= 0.
    const integer n = mp::abs(numerator) << -quantum_exponent;
    position at;
    mp::divide_qr(n, denominator, at.whole, at.rest);
    if (numerator < 0) {  // the floor of a negative number
        at.whole = -at.whole;
        if (at.rest != 0) {
            at.whole -= 1;
            at.rest = denominator - at.rest;
        }
    }
    return at;
}

// Chooses one of two neighbours lo < y < hi. `above_lo` / `gap` is (y - lo) / (hi - lo).
const listed_value& choose(const listed_value& lo, const listed_value& hi, const integer& above_lo,
                           const integer& gap, bool no_mantissa, const rounding_choice& choice,
                           std::uint32_t draw) {
    const bool positive = lo.quanta >= 0;
    const listed_value& inner = positive ? lo : hi;  // the one closer to zero
    const listed_value& outer = positive ? hi : lo;
    switch (choice.how) {
        case format::rounding::zero:
            return inner;
        case format::rounding::up:
            return hi;
        case format::rounding::down:
            return lo;
        case format::rounding::stochastic: {
            const integer above_inner = positive ? above_lo : integer(gap - above_lo);
            integer share;  // floor(delta * 2^k)
            integer cut;
            mp::divide_qr(integer(above_inner << choice.random_bits), gap, share, cut);
            const bool more = 2 * cut > gap || (2 * cut == gap && mp::bit_test(share, 0));
            if (choice.round_fraction && more) ++share;
            const std::uint64_t r = std::uint64_t{draw} >> (32 - choice.random_bits);
            return share + r >= integer(1) << choice.random_bits ? outer : inner;
        }
        case format::rounding::rtne:
        case format::rounding::away:
        case format::rounding::ties_to_zero:
            break;
    }
    const integer twice = 2 * above_lo;
    if (twice != gap) return twice > gap ? hi : lo;
    if (choice.how == format::rounding::away) return outer;
    if (choice.how == format::rounding::ties_to_zero) return inner;
    if (no_mantissa && choice.ties == format::tie_rule::up) {
        return inner.quanta == 0 ? inner : outer;
    }
    return lo.even ? lo : hi;
}

unsigned code_of(const value_list& list, std::int64_t quanta) {
    const auto entry = std::ranges::find(list.values, quanta, &listed_value::quanta);
    return static_cast<unsigned>(entry->code);
}

}  // namespace

rounded round_to(const value_list& list, const integer& numerator, const integer& denominator,
                 bool negative, const rounding_choice& choice, std::uint32_t draw) {
    const position y = in_quanta(numerator, denominator, list.quantum_exponent);
    rounded out{};
    out.beyond = y.whole > list.greatest || (y.whole == list.greatest && y.rest != 0) ||
                 y.whole < list.least;

    // r: the chosen value in the list continued beyond its end. Values beyond the continuation
    // always overflow.
    std::int64_t r = 0;
    if (y.whole >= list.values.back().quanta) {
        r = list.values.back().quanta;
    } else if (y.whole < list.values.front().quanta) {
        r = list.values.front().quanta;
    } else {
        const auto whole = static_cast<std::int64_t>(y.whole);
        const auto hi = std::ranges::upper_bound(list.values, whole, {}, &listed_value::quanta);
        const auto lo = std::prev(hi);
        const integer above_lo = (whole - lo->quanta) * denominator + y.rest;
        if (above_lo == 0) {
            r = lo->quanta;
        } else {
            const integer gap = (hi->quanta - lo->quanta) * denominator;
            const bool no_mantissa = list.element->kind == format::number_kind::floating &&
                                     list.element->mantissa_bits == 0;
            r = choose(*lo, *hi, above_lo, gap, no_mantissa, choice, draw).quanta;
        }
    }
    out.clamped = r > list.greatest || r < list.least;
    out.quanta = std::clamp(r, list.least, list.greatest);
    out.top = out.quanta != 0 && (out.quanta == list.greatest || out.quanta == list.least);
    const std::int64_t magnitude = std::abs(out.quanta);
    out.subnormal = magnitude > 0 && magnitude < list.smallest_normal;

    const auto found = std::ranges::lower_bound(list.values, out.quanta, {}, &listed_value::quanta);
    out.code = static_cast<unsigned>(found->code);
    const bool signed_zero =
        list.element->kind == format::number_kind::floating && list.element->has_sign;
    if (out.quanta == 0 && negative && signed_zero)
        out.code += 1u << (code_bits(*list.element) - 1);
    return out;
}

unsigned cast(const value_list& list, float x, const rounding_choice& choice, std::uint32_t draw,
              bool saturate) {
    const format::element_format& f = *list.element;
    if (std::isnan(x)) {
        if (list.nan_code >= 0) return static_cast<unsigned>(list.nan_code);
        return f.kind == format::number_kind::fixed ? 0u : code_of(list, list.greatest);
    }
    if (std::signbit(x) && f.clamps_negative) return 0;
    const bool negative = std::signbit(x) && f.has_sign;
    const unsigned sign = negative ? 1u << (code_bits(f) - 1) : 0u;
    const int spilled = list.infinity_code >= 0 ? list.infinity_code : list.nan_code;
    const auto beyond = [&](unsigned saturated) {
        return saturate || spilled < 0 ? saturated : sign | static_cast<unsigned>(spilled);
    };
    if (std::isinf(x)) return beyond(code_of(list, negative ? list.least : list.greatest));
    const rounded q = round_to(list, ticks_of(f.has_sign ? x : std::fabs(x)), ticks_of_power(0),
                               negative, choice, draw);
    return q.clamped ? beyond(q.code) : q.code;
}

unsigned cast_to_e8m0(float x, bool toward_zero) {
    if (std::isnan(x)) return 255;
    if (std::isinf(x)) return 254;
    if (x == 0.0f) return 0;
    const integer magnitude = ticks_of(std::fabs(x));
    const integer one = ticks_of_power(0);
    const int exponent = toward_zero ? floor_log2(magnitude, one) : ceil_log2(magnitude, one);
    return static_cast<unsigned>(std::clamp(exponent, -127, 127) + 127);
}

}  // namespace mx::oracle
