// SPDX-License-Identifier: Apache-2.0
// The block kernel against the oracle: random and adversarial blocks of every family of recipes.
// Scales, offsets, codes, values, counts and exact sums to the bit.
#include <cstdint>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/oracle/block.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/block_comparison.hpp"
#include "tests/conformance/block_inputs.hpp"

namespace {

using mx::codec::recipe;
using mx::tests::block_kind;

// Every family of dialect ocp with E8M0 scales: element x rule x rounding x offset, with the
// choices only some have.
std::vector<recipe> all_recipes() {
    std::vector<std::string> integers;
    for (const char* emax : {"0", "log2max", "1"}) {
        for (const char* minimum : {"full", "symmetric"}) {
            integers.push_back(std::string(",int_emax=") + emax + ",int_min=" + minimum);
        }
    }
    std::vector<recipe> out;
    for (const auto& f : mx::format::element_formats) {
        std::vector<std::string> own{""};
        if (!f.floating()) own = integers;
        if (f.floating() && f.mantissa_bits == 0) own = {",ties=up", ",ties=even"};
        for (const auto& rule : mx::scale::scale_rules) {
            if (rule.scale_format != "e8m0" || mx::scale::is_random(rule)) continue;
            for (const char* round :
                 {"rtne", "away", "zero", "up", "down", "nearest-ties-to-zero", "stochastic,seed=7",
                  "stochastic,random_bits=1", "stochastic,random_bits=9"}) {
                for (const char* offset : {"", ",offset=fp16", ",offset=fp16,range=half"}) {
                    for (const std::string& extra : own) {
                        if (extra.find("ties") == 1 && std::string(round) != "rtne") continue;
                        const bool searched = mx::scale::is_search(rule.id);
                        if (searched && *offset != '\0') continue;
                        out.push_back(mx::codec::parse_recipe(
                            "mxfp8:element=" + std::string(f.name) + ",scale=" +
                            std::string(rule.name) + ",round=" + round + offset + extra));
                        if (!searched || std::string(round) != "rtne") continue;
                        for (const char* more :
                             {",search=mae", ",reach=1", ",search=mae,reach=0"}) {
                            out.push_back(
                                mx::codec::parse_recipe("mxfp8:element=" + std::string(f.name) +
                                                        ",scale=search" + more + extra));
                        }
                    }
                }
            }
        }
    }
    return out;
}

}  // namespace

TEST_CASE("blocks of every recipe equal the oracle's") {
    constexpr std::size_t sizes[] = {32, 16, 1, 7, 32, 50};
    std::uint64_t seed = 0;
    std::uint64_t blocks = 0;
    for (const recipe& r : all_recipes()) {
        const mx::oracle::recipe stated = mx::app::oracle_recipe(r);
        const auto list = mx::oracle::list_values(*r.element, stated.full_range);
        mx::tests::comparison result;
        for (const block_kind kind : mx::tests::block_kinds) {
            ++seed;
            mx::tests::compare_block(r, stated, list, kind, sizes[seed % 6], seed, 0, result);
        }
        blocks += result.blocks;
        CAPTURE(mx::codec::to_string(r), result.first);
        CHECK(result.differences == 0);
    }
    CHECK(blocks > 40000);
}
