// SPDX-License-Identifier: Apache-2.0
// The scale rules against closed forms on exponent field E and mantissa M of the block maximum.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/mx/commands/selftest.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/recipe.hpp"

namespace mx::app {
namespace {

using format::element_format;

// Codes from fields alone; M counts in units of 2^-23.
struct closed_form {
    std::string_view rule;
    int (*exponent)(const element_format& f, int e, std::uint32_t m);
};

constexpr std::uint32_t top_bits(int n) { return n == 0 ? 0u : ((1u << n) - 1u) << (23 - n); }

constexpr closed_form forms[] = {
    {"floor", [](const element_format& f, int e, std::uint32_t) { return e - f.emax(); }},
    {"ceil",
     [](const element_format& f, int e, std::uint32_t m) { return e + (m != 0) - f.emax(); }},
    {"even",
     [](const element_format& f, int e, std::uint32_t m) {
         // From 2 - 2^-(m+1) on the mantissa rounds to the next power of two.
         return e + (m >= top_bits(f.mantissa_bits + 1)) - f.emax();
     }},
    {"rceil", [](const element_format& f, int e,
                 std::uint32_t m) { return e - f.emax() + (m > f.max_f32_mantissa()); }},
    {"enhanced", [](const element_format& f, int e,
                    std::uint32_t m) { return e - f.emax() + (m > top_bits(f.mantissa_bits)); }},
    {"ceil-div-max",
     [](const element_format& f, int e, std::uint32_t m) {
         return e - f.emax() + (m > top_bits(f.mantissa_bits));
     }},
    // 1.75, and sqrt 2 to the next float32 above it.
    {"floor-bump", [](const element_format& f, int e,
                      std::uint32_t m) { return e - f.emax() + (m > 0x600000u); }},
    {"nearest", [](const element_format& f, int e,
                   std::uint32_t m) { return e - f.emax() + (m > 0x3504f3u); }},
};

std::set<std::uint32_t> mantissas(const element_format& f) {
    std::set<std::uint32_t> all;
    for (const std::uint32_t at : {0u, 0x3504f3u, 0x600000u, 0x7fffffu, f.max_f32_mantissa(),
                                   top_bits(f.mantissa_bits), top_bits(f.mantissa_bits + 1)}) {
        for (const int ulp : {-1, 0, 1}) {
            const auto m = static_cast<std::int64_t>(at) + ulp;
            if (m >= 0 && m <= 0x7fffff) all.insert(static_cast<std::uint32_t>(m));
        }
    }
    return all;
}

}  // namespace

void check_scale_thresholds(selftest_findings& into, const selftest_options&) {
    for (const element_format& f : format::element_formats) {
        const std::set<std::uint32_t> ms = mantissas(f);
        for (const closed_form& form : forms) {
            const codec::recipe r =
                codec::parse_recipe(fmt::format("mxfp8:element={},scale={}", f.name, form.rule));
            const codec::block_params p = codec::params_of(r);
            for (int e = 1; e < 255; ++e) {
                for (const std::uint32_t m : ms) {
                    const int exponent = form.exponent(f, e, m);
                    const bool beyond =
                        form.rule == "even" && exponent + f.emax() == 255;  // rounds to 2^128
                    const int want =
                        beyond ? format::e8m0_nan : std::clamp(exponent, 0, format::e8m0_max);
                    const std::uint32_t bits = (static_cast<std::uint32_t>(e) << 23) | m;
                    const int got = codec::dialect_scale(p, bits).code;
                    into.expect(got == want, [&] {
                        return selftest_difference{codec::to_string(r), hex_bits(bits),
                                                   fmt::format("scale code {}", want),
                                                   fmt::format("scale code {}", got)};
                    });
                }
            }
        }
    }
}

}  // namespace mx::app
