// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/conversions.hpp"

#include <fmt/format.h>

#include "libmx/base/bits.hpp"
#include "libmx/base/named.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/terms.hpp"

namespace mx::conformance::vectors {
namespace {

bool is_nan(std::uint32_t x) { return (x & base::f32_magnitude_mask) > base::f32_infinity; }

constexpr std::uint32_t half_nan = 0x7fffu;

// .relu: negative numbers and -0 become +0; NaN is kept.
std::uint32_t without_negative(std::uint32_t x) {
    return (x & base::f32_sign_mask) != 0 && !is_nan(x) ? 0u : x;
}

// Without saturation, rounding up the largest code gives the NaN code, which follows it.
std::uint32_t e8m0_of(std::uint32_t x, bool toward_zero, bool saturate) {
    if (saturate) return format::cast_e8m0(x, toward_zero);
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (magnitude >= base::f32_infinity) return format::e8m0_nan;
    const std::uint32_t mantissa = magnitude & base::f32_mantissa_mask;
    const std::uint32_t field = magnitude >> 23;
    if (toward_zero) return field;
    return field + ((field == 0 ? mantissa > 0x400000u : mantissa != 0) ? 1u : 0u);
}

std::uint32_t reversed_byte(std::uint32_t byte) {
    std::uint32_t result = 0;
    for (int i = 0; i < 8; ++i) result |= (byte >> i & 1u) << (7 - i);
    return result;
}

// With `saturate`, limits a half to the largest finite value.
std::uint32_t at_most(std::uint32_t largest, std::uint32_t half, bool saturate) {
    return saturate && (half & 0x7fffu) > largest ? (half & 0x8000u) | largest : half;
}

// The random bits are added below the last bit kept, also for subnormals.
std::uint32_t bf16_of(std::uint32_t x, std::uint32_t random16, bool saturate) {
    if (is_nan(x)) return half_nan;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    const std::uint32_t sum = magnitude >= base::f32_infinity ? magnitude : magnitude + random16;
    return at_most(0x7f7fu, sum >> 16 | (x & base::f32_sign_mask) >> 16, saturate);
}

std::uint32_t f16_of(std::uint32_t x, std::uint32_t random13, bool saturate) {
    if (is_nan(x)) return half_nan;
    constexpr format::element_params f16 =
        format::params_of(*format::find_wide_format("f16"), false);
    const std::uint32_t sign = (x & base::f32_sign_mask) >> 16;
    if ((x & base::f32_magnitude_mask) == base::f32_infinity) {
        return at_most(0x7bffu, sign | 0x7c00u, saturate);
    }
    const format::rounding_mode mode{format::rounding::stochastic, format::tie_rule::up, 13, false};
    const format::encoded e = format::encode_magnitude(f16, mode, x, 0, random13 << 19);
    return at_most(0x7bffu, sign | (e.unbounded > 0x7bffu ? 0x7c00u : e.magnitude), saturate);
}

narrowing row_of(std::string_view format, conversion_input from, conversion_rounding how, bool relu,
                 bool saturate = true) {
    const bool scale = format == "e8m0";
    const std::string_view ptx = scale ? "ue8m0" : format;
    constexpr std::string_view sources[] = {"f32", "bf16x2", "f16x2"};
    constexpr std::string_view endings[] = {"", ".bf16", ".f16"};
    constexpr std::string_view roundings[] = {"rn", "rp", "rz"};
    const auto source = static_cast<std::size_t>(from);
    const std::string_view round = roundings[static_cast<std::size_t>(how)];
    const bool fp8 = format == "e4m3" || format == "e5m2";
    return {fmt::format("{}.{}{}{}{}", ptx, round, scale && saturate ? ".sat" : "",
                        relu ? ".relu" : "", endings[source]),
            fmt::format("cvt.{}{}{}.{}x2.{}", round, saturate ? ".satfinite" : "",
                        relu ? ".relu" : "", ptx, sources[source]),
            format,
            from,
            how,
            relu,
            saturate,
            fp8 ? conversion_since::sm89 : conversion_since::sm100};
}

}  // namespace

const std::vector<narrowing>& narrowings() {
    static const std::vector<narrowing> all = [] {
        using enum conversion_input;
        using enum conversion_rounding;
        std::vector<narrowing> list;
        for (const char* format : {"e4m3", "e5m2", "e2m1", "e2m3", "e3m2"}) {
            for (const bool relu : {false, true}) {
                list.push_back(row_of(format, f32, nearest, relu));
            }
        }
        for (const char* format : {"e4m3", "e5m2", "e2m1"}) {
            for (const bool relu : {false, true}) {
                list.push_back(row_of(format, f16x2, nearest, relu));
            }
        }
        for (const conversion_input from : {f32, bf16x2}) {
            for (const bool saturate : {true, false}) {
                list.push_back(row_of("e8m0", from, up, false, saturate));
                list.push_back(row_of("e8m0", from, zero, false, saturate));
            }
        }
        return list;
    }();
    return all;
}

const narrowing* find_narrowing(std::string_view name) {
    return base::find_named(narrowings(), name);
}
const widening* find_widening(std::string_view name) { return base::find_named(widenings, name); }
const stochastic_narrowing* find_stochastic_narrowing(std::string_view name) {
    return base::find_named(stochastic_narrowings, name);
}

std::size_t widening::codes() const {
    return format == "e8m0"
               ? 256
               : static_cast<std::size_t>(format::find_element_format(format)->codes());
}

narrower::narrower(const narrowing& row)
    : row_(&row),
      element_(row.format == "e8m0" ? nullptr : format::find_element_format(row.format)) {}

std::uint32_t narrower::operator()(std::uint32_t x) const {
    if (element_ == nullptr) {
        return e8m0_of(x, row_->how == conversion_rounding::zero, row_->saturate);
    }
    if (row_->relu) x = without_negative(x);
    return format::cast_code(format::params_of(*element_, false), {}, x, row_->saturate, 0);
}

std::uint32_t widened(const widening& row, std::uint32_t code) {
    if (row.format == "e8m0") {
        if (code == format::e8m0_nan) return half_nan;
        return base::bits_of(static_cast<float>(format::decode_e8m0(static_cast<int>(code)))) >> 16;
    }
    const float value = format::decode(*format::find_element_format(row.format), code);
    std::uint32_t bits = base::bits_of(value);
    if (row.relu) bits = without_negative(bits);
    return is_nan(bits) ? half_nan : gemm::f16_from_f32(bits);
}

std::uint32_t stochastic_result(const stochastic_narrowing& row, const random_byte_order& order,
                                const std::uint32_t* x, std::uint32_t random) {
    const auto value = [&](std::size_t i) { return row.relu ? without_negative(x[i]) : x[i]; };
    if (row.values == 2) {
        const std::uint32_t low = random & 0xffffu;
        const std::uint32_t high = random >> 16;
        if (row.format == "bf16") {
            return bf16_of(value(0), low, row.saturate) | bf16_of(value(1), high, row.saturate)
                                                              << 16;
        }
        return f16_of(value(0), low & 0x1fffu, row.saturate) |
               f16_of(value(1), high & 0x1fffu, row.saturate) << 16;
    }
    const format::element_params f =
        format::params_of(*format::find_element_format(row.format), false);
    std::uint32_t result = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const auto byte_at = [&](int at) {
            const std::uint32_t byte = random >> (8 * at) & 0xffu;
            return order.reversed[i] ? reversed_byte(byte) : byte;
        };
        std::uint32_t draw = byte_at(order.byte[i]) << 24;
        int bits = 8;
        if (order.below[i] >= 0) {
            draw |= byte_at(order.below[i]) << 16;
            bits = 16;
        }
        const format::rounding_mode mode{format::rounding::stochastic, format::tie_rule::up, bits,
                                         false};
        const std::uint32_t code = format::cast_code(f, mode, value(i), true, draw);
        result |= code << (row.code_bits * static_cast<int>(i));
    }
    return result;
}

}  // namespace mx::conformance::vectors
