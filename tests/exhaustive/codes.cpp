// SPDX-License-Identifier: Apache-2.0
// Every code of every format: its value compared with the oracle's, and encoding and decoding.
#include <cmath>
#include <string>

#include "libmx/base/bits.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/oracle/value_list.hpp"
#include "tests/catch.hpp"

namespace {

using mx::base::bits_of;
using mx::format::element_format;

bool same(float value, const mx::oracle::decoded& meaning) {
    switch (meaning.what) {
        case mx::oracle::number_class::nan:
            return std::isnan(value);
        case mx::oracle::number_class::infinite:
            return std::isinf(value) && std::signbit(value) == meaning.negative;
        case mx::oracle::number_class::finite:
            break;
    }
    return std::isfinite(value) && mx::oracle::exact(value) == meaning.value() &&
           std::signbit(value) == meaning.negative;
}

void check_codes(const element_format& f) {
    const auto params = mx::format::params_of(f, true);
    for (std::uint32_t code = 0; code < 1u << mx::oracle::code_bits(f); ++code) {
        CAPTURE(std::string(f.name), code);
        const float value = mx::format::decode(f, code);
        CHECK(same(value, mx::oracle::decode(f, code)));
        if (!std::isfinite(value)) continue;
        for (const mx::format::rounding_row& row : mx::format::roundings) {
            // A representable value is not rounded, for any draw.
            for (const std::uint32_t draw : {0u, ~0u}) {
                const auto back =
                    mx::format::cast_code(params, {row.id, {}, 32}, bits_of(value), true, draw);
                CHECK(back == code);
            }
        }
    }
}

// The largest k with 2^k <= v, by trying.
int floor_log2_of(const mx::oracle::rational& v) {
    int k = -200;
    while (mx::oracle::power_of_two(k + 1) <= v) ++k;
    return k;
}

}  // namespace

TEST_CASE("every element code decodes as the oracle says and encodes to itself") {
    for (const element_format& f : mx::format::element_formats) check_codes(f);
    for (const mx::format::scale_format& s : mx::format::scale_formats) {
        if (s.is_number()) check_codes(s.number);
    }
}

TEST_CASE("the limits the table derives are those of the codes") {
    for (const element_format& f : mx::format::element_formats) {
        CAPTURE(std::string(f.name));
        mx::oracle::rational largest = 0;
        for (std::uint32_t code = 0; code < 1u << mx::oracle::code_bits(f); ++code) {
            const auto d = mx::oracle::decode(f, code);
            if (d.what == mx::oracle::number_class::finite && !d.negative) {
                largest = std::max(largest, d.magnitude);
            }
        }
        CHECK(mx::oracle::exact(mx::format::decode(f, f.max_code())) == largest);
        CHECK(f.emax() == floor_log2_of(largest));
        CHECK(f.bits() == mx::oracle::code_bits(f));
    }
}

TEST_CASE("every e8m0 code decodes as the oracle says and encodes to itself") {
    const mx::format::scale_format& e8m0 = *mx::format::find_scale_format("e8m0");
    for (unsigned code = 0; code < 256; ++code) {
        CAPTURE(code);
        const double value = mx::format::decode_e8m0(static_cast<int>(code));
        const auto meaning = mx::oracle::decode_scale(e8m0, code);
        CHECK(std::isnan(value) == (meaning.what == mx::oracle::number_class::nan));
        if (std::isnan(value)) continue;
        const auto as_float = static_cast<float>(value);
        CHECK(mx::oracle::exact(as_float) == meaning.magnitude);
        for (const bool toward_zero : {false, true}) {
            CHECK(mx::format::cast_e8m0(bits_of(as_float), toward_zero) == code);
        }
    }
}
