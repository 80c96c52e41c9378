// SPDX-License-Identifier: Apache-2.0
// All 65,536 bfloat16 and all 65,536 binary16 inputs, for every element format (and UE4M3), every
// deterministic rounding, tie rule and integer range: the encoder against the oracle.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/base/half.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/rounding.hpp"
#include "tests/catch.hpp"

namespace {

using mx::base::bits_of;
using mx::format::element_format;

struct variant {
    mx::format::rounding_mode mode;
    bool full_range;
};

// Every way a format can be rounded without random numbers; a choice that a format does not have
// (ties without mantissa bits, the range of an integer) appears once.
std::vector<variant> variants_of(const element_format& f) {
    std::vector<variant> out;
    for (const mx::format::rounding_row& row : mx::format::roundings) {
        if (row.id == mx::format::rounding::stochastic) continue;
        for (const auto ties : {mx::format::tie_rule::up, mx::format::tie_rule::even}) {
            for (const bool full : {false, true}) {
                const bool has_ties = f.floating() && f.mantissa_bits == 0;
                if (ties == mx::format::tie_rule::even && !has_ties) continue;
                if (full && f.floating()) continue;
                out.push_back({{row.id, ties, 32}, full});
            }
        }
    }
    return out;
}

std::vector<float> all_inputs() {
    std::vector<float> x;
    for (std::uint32_t h = 0; h < 65536; ++h) {
        x.push_back(mx::base::float_from_bf16(static_cast<std::uint16_t>(h)));
    }
    for (std::uint32_t h = 0; h < 65536; ++h) {
        x.push_back(mx::base::float_from_half(static_cast<std::uint16_t>(h)));
    }
    return x;
}

std::uint64_t count_differences(const element_format& f, const variant& v,
                                const std::vector<float>& inputs, std::string& first) {
    const mx::format::element_params p = mx::format::params_of(f, v.full_range);
    const mx::oracle::value_list list = mx::oracle::list_values(f, v.full_range);
    const mx::oracle::rounding_choice choice{v.mode.how, v.mode.ties, v.mode.random_bits};
    const mx::oracle::integer one = mx::oracle::ticks_of_power(0);
    std::uint64_t differences = 0;
    const auto expect = [&](bool same, float x, const char* what) {
        if (!same && differences++ == 0) {
            first = std::string(what) + " of bits " + std::to_string(bits_of(x));
        }
    };
    for (const float x : inputs) {
        const auto code = mx::format::cast_code(p, v.mode, bits_of(x), true, 0);
        if (std::isnan(x) || std::isinf(x)) {
            expect(code == mx::oracle::cast(list, x, choice, 0, true), x, "cast");
        } else {
            const bool clamped = f.clamps_negative && x < 0;
            const float magnitude = f.has_sign ? x : clamped ? 0.0f : std::fabs(x);
            const auto e = mx::format::encode_magnitude(p, v.mode, bits_of(magnitude), 0, 0);
            const auto q = mx::oracle::round_to(list, mx::oracle::ticks_of(magnitude), one,
                                                std::signbit(magnitude), choice, 0);
            const auto limit = e.negative ? p.max_negative : p.max_positive;
            expect(code == q.code, x, "code");
            expect(e.beyond_max == q.beyond, x, "overflow");
            expect((e.unbounded > limit) == q.clamped, x, "clamp");
            expect((e.magnitude == limit) == q.top, x, "top code");
            expect((e.magnitude != 0 && e.magnitude < p.smallest_normal) == q.subnormal, x,
                   "subnormal");
        }
        if (p.nan_code >= 0) {
            expect(mx::format::cast_code(p, v.mode, bits_of(x), false, 0) ==
                       mx::oracle::cast(list, x, choice, 0, false),
                   x, "cast without saturation");
        }
    }
    return differences;
}

void check_format(const element_format& f, const std::vector<float>& inputs) {
    for (const variant& v : variants_of(f)) {
        CAPTURE(std::string(f.name), std::string(mx::format::row_of(v.mode.how).name),
                static_cast<int>(v.mode.ties), v.full_range);
        std::string first;
        const std::uint64_t differences = count_differences(f, v, inputs, first);
        CAPTURE(first);
        CHECK(differences == 0);
    }
}

}  // namespace

TEST_CASE("every 16-bit input rounds as the oracle says, in every format") {
    const std::vector<float> inputs = all_inputs();
    for (const element_format& f : mx::format::element_formats) check_format(f, inputs);
    for (const mx::format::scale_format& s : mx::format::scale_formats) {
        if (s.is_number()) check_format(s.number, inputs);
    }
}

TEST_CASE("every 16-bit input converts to e8m0 as the oracle says") {
    std::uint64_t differences = 0;
    for (const float x : all_inputs()) {
        for (const bool toward_zero : {false, true}) {
            const auto code = mx::format::cast_e8m0(bits_of(x), toward_zero);
            differences += code != mx::oracle::cast_to_e8m0(x, toward_zero) ? 1 : 0;
        }
    }
    CHECK(differences == 0);
}
