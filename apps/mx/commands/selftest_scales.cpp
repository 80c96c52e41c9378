// SPDX-License-Identifier: Apache-2.0
// Compares the scale rules with closed forms in exponent field E and mantissa M of the block
// maximum.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/mx/commands/selftest.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/recipe.hpp"

namespace mx::app {
namespace {

using format::element_format;

constexpr std::uint32_t top_bits(int n) { return n == 0 ? 0u : ((1u << n) - 1u) << (23 - n); }

// The exponent is E - emax, plus one from the mantissa `first` on, in units of 2^-23.
struct closed_form {
    std::string_view rule;
    std::uint32_t (*first)(const element_format& f);
};
constexpr closed_form forms[] = {
    {"floor", [](const element_format&) { return 1u << 23; }},  // never
    {"ceil", [](const element_format&) { return 1u; }},
    // From 2 - 2^-(m+1) on the mantissa rounds to the next power of two.
    {"even", [](const element_format& f) { return top_bits(f.mantissa_bits + 1); }},
    {"rceil", [](const element_format& f) { return f.max_f32_mantissa() + 1; }},
    {"enhanced", [](const element_format& f) { return top_bits(f.mantissa_bits) + 1; }},
    {"ceil-div-max", [](const element_format& f) { return top_bits(f.mantissa_bits) + 1; }},
    // Above 1.75, and above the float32 before sqrt 2.
    {"floor-bump", [](const element_format&) { return 0x600001u; }},
    {"nearest", [](const element_format&) { return 0x3504f4u; }},
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
                    const int exponent = e - f.emax() + (m >= form.first(f) ? 1 : 0);
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
