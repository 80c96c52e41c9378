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
// and the midpoints between them in every binade, including subnormals, with their neighbours, and
// NaN and Inf.
std::vector<std::uint32_t> amaxes(int mantissa_bits) {
    const int bits = mantissa_bits + 1;
    const std::uint32_t steps = 1u << bits;
    std::vector<std::uint32_t> out;
    for (std::uint32_t field = 0; field < 255; ++field) {
        for (std::uint32_t step = 0; step < steps; ++step) {
            const std::uint32_t centre = field << 23 | step << (23 - bits);
            for (int d = -2; d <= 2; ++d) {
                const std::uint32_t u = centre + static_cast<std::uint32_t>(d);
                if (u <= mx::base::f32_infinity) out.push_back(u);
            }
        }
    }
    // Subnormals have binades of their own.
    for (int bit = 0; bit < 23; ++bit) {
        for (std::uint32_t step = 0; step < steps; ++step) {
            const std::uint64_t centre = (std::uint64_t{steps + step} << bit) >> bits;
            for (int d = -2; d <= 2; ++d) {
                const std::int64_t u = static_cast<std::int64_t>(centre) + d;
                if (u >= 0) out.push_back(static_cast<std::uint32_t>(u));
            }
        }
    }
    // sqrt 2, the threshold of `nearest`.
    for (std::uint32_t field = 1; field < 255; ++field) {
        for (std::uint32_t m = 0x3504f1u; m <= 0x3504f6u; ++m) out.push_back(field << 23 | m);
    }
    for (const std::uint32_t u :
         {0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
        out.push_back(u);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace

TEST_CASE("every scale rule agrees with its definition at every boundary") {
    for (const mx::format::element_format& f : mx::format::element_formats) {
        const std::vector<std::uint32_t> inputs = amaxes(f.mantissa_bits);
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
                mx::scale::rule_input in = mx::scale::rule_facts(f, emax);
                std::uint64_t differences = 0;
                std::uint32_t first = 0;
                for (const std::uint32_t u : inputs) {
                    in.amax_bits = u;
                    // Any draw, the extremes among them.
                    in.draw = u % 7 == 0 ? ~0u : u % 7 == 1 ? 0u : u * 0x9e3779b9u;
                    const int code = mx::scale::scale_code(rule.id, in);
                    const int expected =
                        mx::oracle::scale_code(*stated, list, mx::app::oracle_emax(emax),
                                               mx::base::float_from_bits(u), in.draw);
                    if (code != expected && differences++ == 0) first = u;
                }
                CAPTURE(first);
                CHECK(differences == 0);
            }
        }
    }
}
