// SPDX-License-Identifier: Apache-2.0
// Conversions of single values. The expected result is computed from the values of neighbouring
// codes, not by the encoder.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "apps/mx/commands/selftest.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/disagreements.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"

namespace mx::app {
namespace {

using base::bits_of;
using codec::dialect;
using format::element_format;
using format::rounding;

std::string hex_code_of(std::uint32_t code) { return fmt::format("{:#04x}", code); }

std::uint32_t code_of(const element_format& f, std::uint32_t magnitude, bool negative) {
    if (!negative) return magnitude;
    return f.floating() ? magnitude | f.sign_bit()
                        : (static_cast<std::uint32_t>(f.codes()) - magnitude) & f.code_mask();
}

// Compares one code with the correct one. subject(): describes the conversion.
template <typename Subject>
void expect_code(selftest_findings& into, std::uint32_t bits, std::uint32_t want, std::uint32_t got,
                 Subject&& subject) {
    into.expect(got == want, [&] {
        return selftest_difference{subject(), hex_bits(bits), hex_code_of(want), hex_code_of(got)};
    });
}

void round_trip(const dialect& d, const element_format& f, const format::rounding_row& how,
                selftest_findings& into) {
    const bool full = !f.floating() && codec::default_int_min(f, d) == codec::int_min::full;
    format::rounding_mode mode;
    mode.how = how.id;
    const codec::conversion c = codec::conversion_of(d, f, mode, true, full);
    for (std::uint32_t code = 0; code < static_cast<std::uint32_t>(f.codes()); ++code) {
        const float v = c.value[code];
        const bool unused = !f.floating() && !full && code == f.sign_bit();
        if (!std::isfinite(v) || unused) continue;
        const codec::converted q = codec::convert(c, bits_of(v), 0);
        const bool same = q.value == v && (v == 0 || q.code == static_cast<int>(code));
        into.expect(same, [&] {
            return selftest_difference{fmt::format("{} {} {}", d.name, f.name, how.name),
                                       hex_bits(bits_of(v)), hex_code_of(code),
                                       fmt::format("{:#04x} = {}", q.code, q.value)};
        });
    }
}

// The position of an input between two neighbouring values.
enum class place { at, above, below_middle, middle, above_middle, below_next };

// Whether the magnitude rounds up to the next code.
bool goes_up(const element_format& f, const format::rounding_mode& mode, std::uint32_t code,
             place where, bool negative, std::uint32_t draw) {
    if (where == place::at) return false;
    switch (mode.how) {
        case rounding::zero:
            return false;
        case rounding::up:
            return !negative;
        case rounding::down:
            return negative;
        case rounding::stochastic:
            return draw == 0x80000000u;  // only at the midpoint
        case rounding::rtne:
        case rounding::away:
        case rounding::ties_to_zero:
            break;
    }
    if (where != place::middle) return where >= place::above_middle;
    if (mode.how == rounding::away) return true;
    if (mode.how == rounding::ties_to_zero) return false;
    const bool powers = f.floating() && f.mantissa_bits == 0;
    if (powers && mode.ties == format::tie_rule::up) return code != 0;
    return code % 2 == 1;
}

struct probe_point {
    place where;
    float x;
    std::uint32_t draw = 0;
};

std::vector<probe_point> points_between(float a, float b, rounding how) {
    const float middle = (a + b) / 2;
    const auto down = [](float x) { return std::nextafter(x, 0.0f); };
    const auto up = [](float x) {
        return std::nextafter(x, std::numeric_limits<float>::infinity());
    };
    if (how == rounding::stochastic) {
        return {{place::at, a, ~0u},
                {place::middle, middle, 0x80000000u},
                {place::middle, middle, 0x7fffffffu}};
    }
    return {{place::at, a},
            {place::above, up(a)},
            {place::below_middle, down(middle)},
            {place::middle, middle},
            {place::above_middle, up(middle)},
            {place::below_next, down(b)}};
}

void thresholds_of(const element_format& f, const format::rounding_mode& mode,
                   selftest_findings& into) {
    const format::element_params p = format::params_of(f, false);
    for (std::uint32_t code = 0; code <= f.max_code(); ++code) {
        const float a = format::decode(f, code);
        const bool last = code == f.max_code();
        // Above the largest value the grid continues with one more value.
        const float b = last ? 2 * a - format::decode(f, code - 1) : format::decode(f, code + 1);
        for (const probe_point& point : points_between(a, b, mode.how)) {
            for (const bool negative : {false, true}) {
                if (negative && !f.has_sign) continue;
                const std::uint32_t bits = bits_of(point.x) | (negative ? base::f32_sign_mask : 0u);
                const bool up = goes_up(f, mode, code, point.where, negative, point.draw);
                for (const bool saturate : {true, false}) {
                    const bool stays = last && (saturate || p.nan_code < 0);
                    const std::uint32_t want = code_of(f, up && !stays ? code + 1 : code, negative);
                    const std::uint32_t got =
                        format::cast_code(p, mode, bits, saturate, point.draw);
                    expect_code(into, bits, want, got, [&] {
                        return fmt::format("{} {}{}", f.name, row_of(mode.how).name,
                                           saturate ? "" : ", not saturating");
                    });
                }
            }
        }
    }
}

void e8m0_case(selftest_findings& into, float x, bool toward_zero, std::uint32_t want) {
    const std::uint32_t got = format::cast_e8m0(bits_of(x), toward_zero);
    expect_code(into, bits_of(x), want, got,
                [&] { return std::string(toward_zero ? "e8m0 zero" : "e8m0 up"); });
}

template <typename Visit>
void each_number_format(Visit&& visit) {
    for (const element_format& f : format::element_formats) visit(f);
    for (const format::scale_format& f : format::scale_formats) {
        if (f.is_number()) visit(f.number);
    }
}

}  // namespace

void check_round_trips(selftest_findings& into, const selftest_options&) {
    for (const dialect& d : codec::dialects()) {
        for (const element_format& f : format::element_formats) {
            if (!d.elements.empty() && !codec::lists(d.elements, f.name)) continue;
            for (const format::rounding_row& how : format::roundings) {
                if (codec::lists(d.roundings, how.name)) round_trip(d, f, how, into);
            }
        }
    }
    for (std::uint32_t code = 0; code < format::e8m0_nan; ++code) {
        const auto x = static_cast<float>(format::decode_e8m0(static_cast<int>(code)));
        e8m0_case(into, x, false, code);
        e8m0_case(into, x, true, code);
    }
}

void check_thresholds(selftest_findings& into, const selftest_options&) {
    each_number_format([&](const element_format& f) {
        for (const format::rounding_row& how : format::roundings) {
            for (const format::tie_rule ties : {format::tie_rule::up, format::tie_rule::even}) {
                if (f.mantissa_bits != 0 && ties == format::tie_rule::even) continue;
                thresholds_of(f, {how.id, ties, 32}, into);
            }
        }
    });
    for (std::uint32_t code = 1; code < format::e8m0_nan; ++code) {
        const auto x = static_cast<float>(format::decode_e8m0(static_cast<int>(code)));
        const float above = base::float_from_bits(bits_of(x) + 1);
        const float below = base::float_from_bits(bits_of(x) - 1);
        e8m0_case(into, above, false, std::min<std::uint32_t>(code + 1, format::e8m0_max));
        e8m0_case(into, above, true, code);
        e8m0_case(into, below, false, code);
        e8m0_case(into, below, true, code - 1);
    }
}

void check_special_values(selftest_findings& into, const selftest_options&) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    constexpr std::uint32_t quiet = 0x7fc00000u, payload = 0x7f800001u;
    each_number_format([&](const element_format& f) {
        const format::element_params p = format::params_of(f, false);
        const auto nan = static_cast<std::uint32_t>(p.nan_code >= 0 ? p.nan_code
                                                    : f.floating()  ? static_cast<int>(f.max_code())
                                                                    : 0);
        for (const bool saturate : {true, false}) {
            const bool spills = !saturate && p.nan_code >= 0;
            const std::uint32_t beyond = f.max_code() + (spills ? 1u : 0u);
            struct special {
                std::uint32_t bits, want;
                bool keeps_sign;
            };
            const special cases[] = {
                {bits_of(inf), beyond, true},
                {bits_of(std::numeric_limits<float>::max()), beyond, true},
                {bits_of(0.0f), 0, true},
                {1u, 0, true},           // the smallest float32
                {0x00800000u, 0, true},  // the smallest normal one
                {quiet, nan, false},
                {payload, nan, false},
            };
            for (const special& s : cases) {
                for (const bool negative : {false, true}) {
                    const std::uint32_t bits = s.bits | (negative ? base::f32_sign_mask : 0u);
                    const bool minus = negative && s.keeps_sign && f.has_sign;
                    const bool clamped = negative && s.keeps_sign && f.clamps_negative;
                    const std::uint32_t want = clamped ? 0u : code_of(f, s.want, minus);
                    const std::uint32_t got = format::cast_code(p, {}, bits, saturate, 0);
                    expect_code(into, bits, want, got, [&] {
                        return fmt::format("{} rtne{}", f.name, saturate ? "" : ", not saturating");
                    });
                }
            }
        }
    });
    e8m0_case(into, 0.0f, false, 0);
    e8m0_case(into, inf, false, format::e8m0_max);
    e8m0_case(into, base::float_from_bits(quiet), false, format::e8m0_nan);
}

void check_disagreements(selftest_findings& into, const selftest_options&) {
    for (const conformance::disagreement& d : conformance::disagreements()) {
        const std::string a = conformance::to_string(conformance::ask(d, d.a));
        const std::string b = conformance::to_string(conformance::ask(d, d.b));
        into.expect(a != b, [&] {
            return selftest_difference{fmt::format("disagreement {}: {}", d.number, d.title),
                                       conformance::input_words(d), "different answers", a};
        });
    }
}

}  // namespace mx::app
