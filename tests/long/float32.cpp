// SPDX-License-Identifier: Apache-2.0
// All 2^32 float32 inputs, for every element format (and UE4M3), every deterministic rounding, tie
// rule and integer range: compares the encoder with the oracle's intervals. Label `long`: runs only
// on request (docs/design/testing.md states how long it takes).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libmx/format/cast.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/rounding.hpp"
#include "tests/catch.hpp"
#include "tests/long/intervals.hpp"

namespace {

using mx::format::element_format;
using mx::format::rounding;
using mx::format::tie_rule;

constexpr std::uint32_t infinity = 0x7f800000u;
constexpr std::uint32_t sign_bit = 0x80000000u;

struct conversion {
    mx::format::element_params f;
    mx::format::rounding_mode mode;
    bool saturate;
};

// The number of patterns first, ..., end - 1 that do not give `code`. The rounding is a constant
// here, so that the loop has no branch for it.
template <rounding How>
std::uint64_t count_others(const conversion& c, std::uint32_t first, std::uint32_t end,
                           std::uint32_t code) {
    const mx::format::rounding_mode mode{How, c.mode.ties, 32};
    std::uint64_t others = 0;
    for (std::uint32_t x = first; x != end; ++x) {
        others += mx::format::cast_code(c.f, mode, x, c.saturate, 0) != code ? 1 : 0;
    }
    return others;
}

using counter = std::uint64_t (*)(const conversion&, std::uint32_t, std::uint32_t, std::uint32_t);

counter counter_of(rounding how) {
    switch (how) {
        case rounding::rtne:
            return count_others<rounding::rtne>;
        case rounding::away:
            return count_others<rounding::away>;
        case rounding::zero:
            return count_others<rounding::zero>;
        case rounding::up:
            return count_others<rounding::up>;
        case rounding::down:
            return count_others<rounding::down>;
        case rounding::ties_to_zero:
            return count_others<rounding::ties_to_zero>;
        case rounding::stochastic:
            break;
    }
    throw std::logic_error("a rounding without random numbers");
}

struct stretch {
    std::uint32_t first;
    std::uint32_t end;  ///< one past the last; wraps to 0 after the last pattern
    std::uint32_t code;
};

// The whole line of patterns in pieces small enough to share among threads.
void add_pieces(std::vector<stretch>& out, std::uint64_t first, std::uint64_t end, unsigned code) {
    constexpr std::uint64_t piece = 1u << 22;
    for (std::uint64_t at = first; at < end; at += piece) {
        const std::uint64_t stop = std::min(at + piece, end);
        out.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(stop), code});
    }
}

std::vector<stretch> all_patterns(const mx::oracle::value_list& list,
                                  const mx::oracle::rounding_choice& choice, bool saturate) {
    std::vector<stretch> out;
    for (const bool negative : {false, true}) {
        const std::uint64_t sign = negative ? sign_bit : 0u;
        const auto parts = mx::oracle::intervals(list, choice, negative, saturate);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const std::uint64_t end = i + 1 < parts.size() ? parts[i + 1].first : sign | infinity;
            add_pieces(out, parts[i].first, end, parts[i].code);
        }
        const float inf = std::numeric_limits<float>::infinity();
        const unsigned of_inf = mx::oracle::cast(list, negative ? -inf : inf, choice, 0, saturate);
        const unsigned of_nan = mx::oracle::cast(list, std::nanf(""), choice, 0, saturate);
        add_pieces(out, sign | infinity, (sign | infinity) + 1, of_inf);
        add_pieces(out, (sign | infinity) + 1, sign + sign_bit, of_nan);
    }
    return out;
}

std::uint64_t count_differences(const std::vector<stretch>& pieces, const conversion& c) {
    const counter count = counter_of(c.mode.how);
    std::uint64_t differences = 0;
    const auto n = static_cast<std::int64_t>(pieces.size());
#pragma omp parallel for schedule(dynamic) reduction(+ : differences)
    for (std::int64_t i = 0; i < n; ++i) {
        const stretch& s = pieces[static_cast<std::size_t>(i)];
        differences += count(c, s.first, s.end, s.code);
    }
    return differences;
}

void check(const element_format& f, rounding how, tie_rule ties, bool full_range, bool saturate) {
    const mx::oracle::value_list list = mx::oracle::list_values(f, full_range);
    const std::vector<stretch> pieces = all_patterns(list, {how, ties, 32}, saturate);
    std::uint64_t patterns = 0;
    for (const stretch& s : pieces) patterns += s.end - s.first;  // modulo 2^32 each, as meant
    const conversion c{mx::format::params_of(f, full_range), {how, ties, 32}, saturate};
    CAPTURE(std::string(f.name), std::string(mx::format::row_of(how).name), static_cast<int>(ties),
            full_range, saturate);
    CHECK(patterns == std::uint64_t{1} << 32);
    CHECK(count_differences(pieces, c) == 0);
}

void check_format(const element_format& f) {
    const bool has_ties = f.floating() && f.mantissa_bits == 0;
    for (const mx::format::rounding_row& row : mx::format::roundings) {
        if (row.id == rounding::stochastic) continue;
        check(f, row.id, tie_rule::up, false, true);
        if (has_ties && row.id == rounding::rtne) check(f, row.id, tie_rule::even, false, true);
        if (!f.floating()) check(f, row.id, tie_rule::up, true, true);
        if (f.nan_code() >= 0) check(f, row.id, tie_rule::up, false, false);
    }
}

}  // namespace

TEST_CASE("every float32 rounds as the oracle's intervals say, in every format") {
    for (const element_format& f : mx::format::element_formats) {
        SECTION(std::string(f.name)) { check_format(f); }
    }
    for (const mx::format::scale_format& s : mx::format::scale_formats) {
        if (!s.is_number()) continue;
        SECTION(std::string(s.name)) { check_format(s.number); }
    }
}
