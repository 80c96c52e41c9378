// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/format_facts.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "libmx/format/decode.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::pages {
namespace {

std::string binary(std::uint32_t value, int bits) {
    std::string out;
    for (int i = bits - 1; i >= 0; --i) out += (value >> i & 1u) != 0 ? '1' : '0';
    return out;
}

double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

std::string nan_codes(const format::element_format& f) {
    switch (f.special) {
        case format::specials::none:
            return "none";
        case format::specials::fn:
            return f.has_sign ? "2 NaN" : "1 NaN";
        case format::specials::ieee:
            return fmt::format("{} NaN, {}", (f.has_sign ? 2 : 1) * ((1 << f.mantissa_bits) - 1),
                               f.has_sign ? "+-Inf" : "Inf");
    }
    return {};
}

int finite_codes(const format::element_format& f) {
    const int per_sign = static_cast<int>(f.max_code()) + 1;
    return f.floating() ? per_sign * (f.has_sign ? 2 : 1) : f.codes();
}

std::string class_of(const format::element_format& f, std::uint32_t code, double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return "infinity";
    const bool negative = std::signbit(value);
    if (value == 0) return negative ? "negative zero" : "zero";
    if (!f.floating()) {
        if (code == f.sign_bit()) return "smallest (int_min=full only)";
        return code == f.max_code() ? "largest" : "integer";
    }
    const std::uint32_t magnitude = code & ~f.sign_bit();
    if (magnitude == f.max_code()) return "largest normal";
    if (magnitude >> f.mantissa_bits != 0) {
        return magnitude == 1u << f.mantissa_bits ? "smallest normal" : "normal";
    }
    return magnitude == 1 ? "smallest subnormal" : "subnormal";
}

// How the fields determine the value, as a formula.
std::string arithmetic(const format::element_format& f, std::uint32_t code, double value) {
    if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    if (!f.floating()) {
        const auto k = static_cast<int>(std::lround(std::ldexp(value, f.mantissa_bits)));
        return fmt::format("{} / {}", k, 1 << f.mantissa_bits);
    }
    const std::uint32_t magnitude = code & ~f.sign_bit();
    const std::uint32_t field = magnitude >> f.mantissa_bits;
    const std::uint32_t fraction = magnitude & ((1u << f.mantissa_bits) - 1u);
    const int exponent = field == 0 ? f.emin() : static_cast<int>(field) - f.bias;
    const std::string significand =
        f.mantissa_bits == 0
            ? fmt::format("{}", field == 0 ? 0 : 1)
            : fmt::format("{}.{}b", field == 0 ? 0 : 1, binary(fraction, f.mantissa_bits));
    return fmt::format("{}{} x 2^{}", std::signbit(value) ? "-" : "", significand, exponent);
}

report::record meaning(int bits, std::uint32_t code, std::string fields, std::string how,
                       double value, std::string kind) {
    return {{"code", hex_code(bits, code)},
            {"decimal_code", integer(code)},
            {"fields", std::move(fields)},
            {"arithmetic", std::move(how)},
            {"value", std::isfinite(value) ? real(value) : undefined()},
            {"exact", std::isfinite(value) ? exact_decimal(value) : kind},
            {"hex", std::isfinite(value) ? hexfloat(value) : kind},
            {"class", std::move(kind)}};
}

}  // namespace

std::string exact_decimal(double x) {
    char buffer[1200];
    std::snprintf(buffer, sizeof buffer, "%.1100g", x);
    return buffer;
}

std::string hexfloat(double x) { return fmt::format("{:a}", x); }

std::string hex_code(int bits, std::uint32_t code) {
    return fmt::format("0x{:0{}x}", code, (bits + 3) / 4);
}

std::string bit_fields(const format::element_format& f, std::uint32_t code) {
    if (!f.floating()) return binary(code, f.bits());
    std::string out;
    if (f.has_sign) out = binary(code >> (f.bits() - 1), 1) + " ";
    out += binary(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1u), f.exponent_bits);
    if (f.mantissa_bits > 0) out += " " + binary(code, f.mantissa_bits);
    return out;
}

report::record limits_of(const format::element_format& f) {
    const double max = format::decode(f, f.max_code());
    const double normal = f.floating() ? power_of_two(f.emin()) : 0;
    const double tiny = power_of_two(f.quantum());
    const bool below = f.has_subnormals() || !f.floating();
    return {{"kind", text("element")},
            {"name", text(f.name)},
            {"bits", integer(f.bits())},
            {"layout", f.floating() ? fmt::format("{}/{}/{}", int{f.has_sign}, f.exponent_bits,
                                                  f.mantissa_bits)
                                    : fmt::format("k/{}", 1 << f.mantissa_bits)},
            {"bias", f.floating() ? integer(f.bias) : undefined()},
            {"emax", integer(f.emax())},
            {"max", real(max)},
            {"min_normal", f.floating() ? real(normal) : undefined()},
            {"min_subnormal", below ? real(tiny) : undefined()},
            {"max_code", hex_code(f.bits(), f.max_code())},
            {"max_hex", hexfloat(max)},
            {"min_normal_hex", f.floating() ? report::value(hexfloat(normal)) : undefined()},
            {"min_subnormal_hex", below ? report::value(hexfloat(tiny)) : undefined()},
            {"specials", nan_codes(f)},
            {"finite_codes", integer(finite_codes(f))},
            {"codes", integer(f.codes())},
            {"safetensors", text(f.safetensors)},
            {"summary", text(f.summary)}};
}

namespace {

report::record float32_limits(const format::scale_format& f) {
    const double max = std::numeric_limits<float>::max();
    const double normal = std::numeric_limits<float>::min();
    const double tiny = std::numeric_limits<float>::denorm_min();
    return {{"kind", text("scale")},
            {"name", text(f.name)},
            {"bits", integer(f.bits())},
            {"layout", text("1/8/23")},
            {"bias", integer(127)},
            {"emax", integer(127)},
            {"max", real(max)},
            {"min_normal", real(normal)},
            {"min_subnormal", real(tiny)},
            {"max_code", text("0x7f7fffff")},
            {"max_hex", hexfloat(max)},
            {"min_normal_hex", hexfloat(normal)},
            {"min_subnormal_hex", hexfloat(tiny)},
            {"specials", text("NaN, +-Inf")},
            {"finite_codes", undefined()},
            {"codes", undefined()},
            {"safetensors", text(f.safetensors)},
            {"summary", text(f.summary)}};
}

}  // namespace

report::record limits_of(const format::scale_format& f) {
    if (f.is_number()) {
        report::record r = limits_of(f.number);
        r[0].second = text("scale");
        r.back().second = text(f.summary);
        return r;
    }
    if (!f.has_codes()) return float32_limits(f);
    const double max = format::decode_e8m0(format::e8m0_max);
    const double min = format::decode_e8m0(0);
    return {{"kind", text("scale")},
            {"name", text(f.name)},
            {"bits", integer(f.bits())},
            {"layout", text("0/8/0")},
            {"bias", integer(format::e8m0_bias)},
            {"emax", integer(format::e8m0_max - format::e8m0_bias)},
            {"max", real(max)},
            {"min_normal", real(min)},
            {"min_subnormal", undefined()},
            {"max_code", hex_code(8, format::e8m0_max)},
            {"max_hex", hexfloat(max)},
            {"min_normal_hex", hexfloat(min)},
            {"min_subnormal_hex", undefined()},
            {"specials", text("1 NaN")},
            {"finite_codes", integer(format::e8m0_max + 1)},
            {"codes", integer(256)},
            {"safetensors", text(f.safetensors)},
            {"summary", text(f.summary)}};
}

report::record meaning_of(const format::element_format& f, std::uint32_t code) {
    const double value = format::decode(f, code);
    return meaning(f.bits(), code, bit_fields(f, code), arithmetic(f, code, value), value,
                   class_of(f, code, value));
}

report::record meaning_of(const format::scale_format& f, std::uint32_t code) {
    if (f.is_number()) return meaning_of(f.number, code);
    const double value = format::decode_e8m0(static_cast<int>(code));
    const bool nan = code == format::e8m0_nan;
    return meaning(8, code, binary(code, 8),
                   nan ? "NaN" : fmt::format("2^{}", static_cast<int>(code) - format::e8m0_bias),
                   value, nan ? "NaN" : "power of two");
}

std::string layout_words(const format::element_format& f) {
    if (!f.floating()) {
        return fmt::format("{}-bit two's complement integer over {}", f.bits(),
                           1 << f.mantissa_bits);
    }
    return fmt::format("{} sign, {} exponent, {} mantissa bit{}", int{f.has_sign}, f.exponent_bits,
                       f.mantissa_bits, f.mantissa_bits == 1 ? "" : "s");
}

}  // namespace mx::pages
