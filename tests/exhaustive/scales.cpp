// SPDX-License-Identifier: Apache-2.0
// The scale rules at the points where they can change: every mantissa boundary of every binade,
// within two units in the last place, for every format, every rule for E8M0 scales, and int_emax.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/base/bits.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/catch.hpp"

namespace {

// Block maxima at which a rule of a format with this many fraction bits can change: its grid points
// and the midpoints between them in every binade, the mantissa from which its row adds one, and the
// maximum from which it gives NaN; each with its neighbours, among subnormals too; and Inf and NaN.
std::vector<std::uint32_t> amaxes(int mantissa_bits, const mx::scale::rule_step& step) {
    const int bits = mantissa_bits + 1;
    std::vector<std::uint32_t> mantissas{step.from};
    for (std::uint32_t i = 0; i < 1u << bits; ++i) mantissas.push_back(i << (23 - bits));
    std::vector<std::uint32_t> out;
    const auto add = [&](std::uint32_t centre) {
        for (std::uint32_t u = std::max(centre, 2u) - 2u; u <= centre + 2u; ++u) {
            if (u <= mx::base::f32_infinity) out.push_back(u);
        }
    };
    for (const std::uint32_t m : mantissas) {
        for (std::uint32_t field = 0; field < 255; ++field) add((field << 23) + m);
        // Subnormals have binades of their own.
        for (int shift = 1; shift <= 23; ++shift) add((m + mx::scale::one_binade) >> shift);
    }
    add(step.nan_from);
    for (const std::uint32_t u : {0x7f7fffffu, 0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
        out.push_back(u);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace

TEST_CASE("every scale rule agrees with its definition at every boundary") {
    for (const mx::format::element_format& f : mx::format::element_formats) {
        const mx::oracle::value_list list = mx::oracle::list_values(f, false);
        for (const mx::scale::scale_rule& rule : mx::scale::scale_rules) {
            // A searched scale does not follow from the maximum.
            if (rule.scale_format != "e8m0" || mx::scale::is_search(rule.id)) continue;
            for (const auto emax : {mx::scale::int_emax::zero, mx::scale::int_emax::log2max,
                                    mx::scale::int_emax::one}) {
                if (f.floating() && emax != mx::scale::int_emax::zero) continue;
                CAPTURE(std::string(f.name), std::string(rule.name), static_cast<int>(emax));
                const auto stated = mx::app::oracle_rule(rule);
                REQUIRE(stated.has_value());
                const mx::scale::rule_step step = mx::scale::step_under(rule, f, emax);
                const std::vector<std::uint32_t> inputs = amaxes(f.mantissa_bits, step);
                std::uint64_t differences = 0;
                std::uint32_t first = 0;
                for (const std::uint32_t u : inputs) {
                    // Any draw, the extremes among them.
                    const std::uint32_t draw = u % 7 == 0 ? ~0u : u % 7 == 1 ? 0u : u * 0x9e3779b9u;
                    const int code = mx::scale::scale_code(step, u, draw);
                    const int expected =
                        mx::oracle::scale_code(*stated, list, mx::app::oracle_emax(emax),
                                               mx::base::float_from_bits(u), draw);
                    if (code != expected && differences++ == 0) first = u;
                }
                CAPTURE(first);
                CHECK(differences == 0);
            }
        }
    }
}
