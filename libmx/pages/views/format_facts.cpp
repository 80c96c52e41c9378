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

std::optional<std::string> hexfloat_of(const std::optional<double>& x) {
    return x ? std::optional(hexfloat(*x)) : std::nullopt;
}

format_limits element_limits(const format::element_format& f) {
    const bool below = f.has_subnormals() || !f.floating();
    return {.kind = "element",
            .name = f.name,
            .bits = f.bits(),
            .layout = f.floating() ? fmt::format("{}/{}/{}", int{f.has_sign}, f.exponent_bits,
                                                 f.mantissa_bits)
                                   : fmt::format("k/{}", 1 << f.mantissa_bits),
            .bias = f.floating() ? std::optional(f.bias) : std::nullopt,
            .emax = f.emax(),
            .max = format::decode(f, f.max_code()),
            .min_normal = f.floating() ? std::optional(power_of_two(f.emin())) : std::nullopt,
            .min_subnormal = below ? std::optional(power_of_two(f.quantum())) : std::nullopt,
            .max_code = hex_code(f.bits(), f.max_code()),
            .specials = nan_codes(f),
            .finite_codes = finite_codes(f),
            .codes = f.codes(),
            .safetensors = f.safetensors,
            .summary = f.summary};
}

format_limits scale_limits(const format::scale_format& f) {
    if (f.is_number()) {
        format_limits l = element_limits(f.number);
        l.kind = "scale";
        l.summary = f.summary;
        return l;
    }
    format_limits l{.kind = "scale",
                    .name = f.name,
                    .bits = f.bits(),
                    .layout = "1/8/23",
                    .bias = 127,
                    .emax = 127,
                    .max = std::numeric_limits<float>::max(),
                    .min_normal = std::numeric_limits<float>::min(),
                    .min_subnormal = std::numeric_limits<float>::denorm_min(),
                    .max_code = "0x7f7fffff",
                    .specials = "NaN, +-Inf",
                    .finite_codes = {},
                    .codes = {},
                    .safetensors = f.safetensors,
                    .summary = f.summary};
    if (!f.has_codes()) return l;
    l.layout = "0/8/0";
    l.bias = format::e8m0_bias;
    l.emax = format::e8m0_max - format::e8m0_bias;
    l.max = format::decode_e8m0(format::e8m0_max);
    l.min_normal = format::decode_e8m0(0);
    l.min_subnormal = {};
    l.max_code = hex_code(8, format::e8m0_max);
    l.specials = "1 NaN";
    l.finite_codes = format::e8m0_max + 1;
    l.codes = 256;
    return l;
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

const std::array<report::declared<format_limits>, 18> limits_members{{
    {"kind", "element|scale", "", [](auto& l) { return l.kind; }},
    {"name", "string", "", [](auto& l) { return l.name; }},
    {"bits", "count", "", [](auto& l) { return l.bits; }},
    {"layout", "string", "sign/exponent/mantissa bits, or k/N: integers over N",
     [](auto& l) { return l.layout; }},
    {"bias", "count?", "of the exponent; null: integers", [](auto& l) { return l.bias; }},
    {"emax", "integer", "exponent of the largest power of two", [](auto& l) { return l.emax; }},
    {"max", "number", "largest finite value", [](auto& l) { return l.max; }},
    {"min_normal", "amount?", "smallest normal", [](auto& l) { return l.min_normal; }},
    {"min_subnormal", "amount?", "smallest subnormal", [](auto& l) { return l.min_subnormal; }},
    {"max_code", "string", "code of the largest value, in hexadecimal",
     [](auto& l) { return l.max_code; }},
    {"max_hex", "string", "largest value as a hexadecimal float",
     [](auto& l) { return hexfloat(l.max); }},
    {"min_normal_hex", "string?", "", [](auto& l) { return hexfloat_of(l.min_normal); }},
    {"min_subnormal_hex", "string?", "", [](auto& l) { return hexfloat_of(l.min_subnormal); }},
    {"specials", "string", "NaN and Inf codes", [](auto& l) { return l.specials; }},
    {"finite_codes", "count?", "null: too many to list", [](auto& l) { return l.finite_codes; }},
    {"codes", "count?", "", [](auto& l) { return l.codes; }},
    {"safetensors", "string", "dtype that codes are stored in",
     [](auto& l) { return l.safetensors; }},
    {"summary", "string", "", [](auto& l) { return l.summary; }},
}};

const std::array<report::declared<code_meaning>, 8> meaning_members{{
    {"code", "string", "in hexadecimal", [](auto& m) { return hex_code(m.bits, m.code); }},
    {"decimal_code", "count", "", [](auto& m) { return m.code; }},
    {"fields", "string", "its bits: sign, exponent, mantissa", [](auto& m) { return m.fields; }},
    {"arithmetic", "string", "how the value comes about", [](auto& m) { return m.arithmetic; }},
    {"value", "number?", "null: NaN or Inf",
     [](auto& m) { return report::finite_or_null(m.value); }},
    {"exact", "string", "the value in decimal, exactly",
     [](auto& m) { return std::isfinite(m.value) ? exact_decimal(m.value) : m.kind; }},
    {"hex", "string", "the value as a hexadecimal float",
     [](auto& m) { return std::isfinite(m.value) ? hexfloat(m.value) : m.kind; }},
    {"class", "string", "normal, subnormal, zero, ...", [](auto& m) { return m.kind; }},
}};

report::record limits_of(const format::element_format& f) {
    return report::written(limits_members, element_limits(f));
}
report::record limits_of(const format::scale_format& f) {
    return report::written(limits_members, scale_limits(f));
}

report::record meaning_of(const format::element_format& f, std::uint32_t code) {
    const double value = format::decode(f, code);
    return report::written(meaning_members,
                           {f.bits(), code, bit_fields(f, code), arithmetic(f, code, value), value,
                            class_of(f, code, value)});
}

report::record meaning_of(const format::scale_format& f, std::uint32_t code) {
    if (f.is_number()) return meaning_of(f.number, code);
    const double value = format::decode_e8m0(static_cast<int>(code));
    const bool nan = code == format::e8m0_nan;
    return report::written(
        meaning_members,
        {8, code, binary(code, 8),
         nan ? "NaN" : fmt::format("2^{}", static_cast<int>(code) - format::e8m0_bias), value,
         nan ? "NaN" : "power of two"});
}

std::string layout_text(const format::element_format& f) {
    if (!f.floating()) {
        return fmt::format("{}-bit two's complement integer over {}", f.bits(),
                           1 << f.mantissa_bits);
    }
    return fmt::format("{} sign, {} exponent, {} mantissa bit{}", int{f.has_sign}, f.exponent_bits,
                       f.mantissa_bits, f.mantissa_bits == 1 ? "" : "s");
}

}  // namespace mx::pages
