// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/comparison.hpp"

#include <fmt/format.h>

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/format/decode.hpp"

namespace mx::conformance::verify {
namespace {

bool is_nan(std::uint32_t bits) { return (bits & base::f32_magnitude_mask) > base::f32_infinity; }

shown_number show_f32(std::uint32_t bits) {
    return {fmt::format("{:#010x}", bits), fmt::format("{}", base::float_from_bits(bits))};
}

shown_number show_f16(std::uint32_t bits) {
    return {fmt::format("{:#06x}", bits),
            fmt::format("{}", base::float_from_half(static_cast<std::uint16_t>(bits)))};
}

shown_number show_code(const code_table& codes, std::int64_t code) {
    if (code < 0) return {"none", "no code"};
    const auto c = static_cast<std::uint32_t>(code);
    return {fmt::format("{:#0{}x}", c, 2 + (codes.bits + 3) / 4),
            codes.has(c) ? fmt::format("{}", codes.value[c]) : "no code of the format"};
}

shown_number show_integer(std::optional<std::uint64_t> n) {
    if (!n) return {"none", "none"};
    return {fmt::format("{:#x}", *n), fmt::format("{}", *n)};
}

}  // namespace

code_table codes_of(const format::element_format& f) {
    code_table t{f.bits(), {}};
    for (int code = 0; code < f.codes(); ++code) {
        t.value.push_back(format::decode(f, static_cast<std::uint32_t>(code)));
    }
    return t;
}

code_table e8m0_codes() {
    code_table t{8, {}};
    for (int code = 0; code < 256; ++code) {
        t.value.push_back(static_cast<float>(format::decode_e8m0(code)));
    }
    return t;
}

std::size_t differences_in(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1u : 0u;
    return count;
}

void comparison::about(std::string tensor, std::string by) {
    tensor_ = std::move(tensor);
    by_ = std::move(by);
    kept_ = 0;
}

void comparison::check_f32(const vector_place& at, std::uint32_t expected, std::uint32_t got) {
    ++found_.compared;
    if (expected == got || (is_nan(expected) && is_nan(got))) return;
    differ(at, show_f32(expected), show_f32(got));
}

bool comparison::check_bits(const vector_place& at, int bits, std::uint32_t expected,
                            std::uint32_t got) {
    ++found_.compared;
    if (expected == got) return false;
    if (bits == 32) return differ(at, show_f32(expected), show_f32(got));
    return differ(at, show_f16(expected), show_f16(got));
}

void comparison::check_code(const vector_place& at, const code_table& codes, std::uint32_t expected,
                            int got) {
    ++found_.compared;
    if (got >= 0 && expected == static_cast<std::uint32_t>(got)) return;
    const bool both_nan =
        got >= 0 && codes.has(expected) && codes.has(static_cast<std::uint32_t>(got)) &&
        std::isnan(codes.value[expected]) && std::isnan(codes.value[static_cast<std::size_t>(got)]);
    if (!both_nan) differ(at, show_code(codes, expected), show_code(codes, got));
}

void comparison::check_integer(const vector_place& at, std::optional<std::uint64_t> expected,
                               std::optional<std::uint64_t> got) {
    ++found_.compared;
    if (expected != got) differ(at, show_integer(expected), show_integer(got));
}

void comparison::skip(std::string_view reason, std::uint64_t places, std::uint64_t values) {
    for (skipped_values& s : found_.skipped) {
        if (s.reason != reason) continue;
        s.places += places;
        s.values += values;
        return;
    }
    found_.skipped.push_back({std::string(reason), places, values});
}

bool comparison::differ(const vector_place& at, shown_number expected, shown_number got) {
    ++found_.differences;
    if (found_.first.size() >= show_ || kept_ >= each_) return false;
    ++kept_;
    difference d{tensor_,        by_, at.index, at.block, at.position, {}, std::move(expected),
                 std::move(got), {}};
    if (at.input) d.input = show_f32(*at.input);
    found_.first.push_back(std::move(d));
    return true;
}

}  // namespace mx::conformance::verify
