// SPDX-License-Identifier: Apache-2.0
// The kernels of the dialects against the oracle's second statement of them: every dialect, with
// every rule, rounding and element format it has, over random and adversarial blocks. Scales,
// codes, values, counts and exact sums to the bit.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/oracle/block.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/block_comparison.hpp"
#include "tests/conformance/block_inputs.hpp"

namespace {

using mx::codec::recipe;
using mx::tests::block_kind;

std::vector<std::string> words_of(std::string_view list) {
    std::vector<std::string> out;
    while (!list.empty()) {
        const std::string_view word = mx::codec::first_of(list);
        out.emplace_back(word);
        list.remove_prefix(std::min(list.size(), word.size() + 1));
    }
    return out;
}

std::vector<std::string> elements_of(const mx::codec::dialect& d) {
    if (!d.elements.empty()) return words_of(d.elements);
    std::vector<std::string> out;
    for (const auto& f : mx::format::element_formats) out.emplace_back(f.name);
    return out;
}

// parse_recipe refuses unsupported combinations of scale formats and dialects.
void add(std::vector<recipe>& out, const std::string& text) {
    try {
        out.push_back(mx::codec::parse_recipe(text));
    } catch (const mx::base::error&) {
    }
}

// A recipe with the choices that only some have.
void add_variants(std::vector<recipe>& out, const std::string& text) {
    add(out, text);
    if (text.find("microxcaling,") != std::string::npos) add(out, text + ",flush_subnormals=true");
    if (text.find("scale=search") != std::string::npos &&
        text.find("round=rtne") != std::string::npos) {
        for (const char* more : {",search=mae", ",reach=1", ",search=mae,reach=5"}) {
            add(out, text + more);
        }
    }
    if (text.find("two-level") == std::string::npos) return;
    add(out, text + ",outer=row");
    add(out, text + ",outer=given:0.75");
    for (const char* measure : {"mse", "mae", "abs_max"}) {
        const std::string selecting = text + ",four_over_six=" + measure;
        add(out, selecting);
        if (text.find("element=e2m1") == std::string::npos) continue;
        const bool wide = text.find("ue5m3") != std::string::npos;
        const bool with_inf = text.find("ue5m3_inf") != std::string::npos;
        const std::string bounded = selecting + (with_inf ? ",bound=61440"
                                                 : wide   ? ",bound=114688"
                                                          : ",bound=448");
        add(out, bounded);
        add(out, bounded + ",candidates=fp16");
        add(out, selecting + ",candidates=fp16,outer=row");
        add(out, selecting + ",candidates=fp16");
    }
}

// Every recipe of a dialect; those of ocp with E8M0 scales have a separate test (blocks.cpp).
std::vector<recipe> recipes_of(const mx::codec::dialect& d) {
    std::vector<recipe> out;
    for (const std::string& rule_name : words_of(d.rules)) {
        // Of one name: the E8M0 rules of ocp are in the other test.
        const auto& rule = *mx::scale::find_scale_rule(rule_name, d.name == "ocp" ? "ue4m3" : "");
        if (d.name == "ocp" && rule.scale_format == "e8m0") continue;
        for (const std::string& scale_format : words_of(rule.scale_format)) {
            for (const std::string& element : elements_of(d)) {
                for (const std::string& round : words_of(d.roundings)) {
                    const std::string keys = ",scale_format=" + scale_format +
                                             ",scale=" + rule_name + ",element=" + element +
                                             ",round=" + round;
                    add_variants(out, "nvfp4:dialect=" + std::string(d.name) + keys);
                }
            }
        }
    }
    return out;
}

}  // namespace

TEST_CASE("blocks of every dialect equal the oracle's") {
    constexpr std::size_t sizes[] = {32, 16, 1, 7, 50};
    std::uint64_t seed = 1000;
    std::uint64_t overflowed = 0;
    for (const mx::codec::dialect& d : mx::codec::dialects()) {
        if (!d.blocks) continue;
        std::uint64_t blocks = 0;
        for (const recipe& r : recipes_of(d)) {
            mx::tests::comparison result;
            // A tensor scale for which the blocks are small, large or beyond.
            for (const float tensor_amax : {1.0f, 3e4f, 0x1.8p-120f}) {
                const mx::oracle::recipe stated = mx::app::oracle_recipe(r, tensor_amax);
                const auto list =
                    mx::oracle::list_values(*stated.by, *r.element, stated.full_range);
                for (const block_kind kind : mx::tests::block_kinds) {
                    ++seed;
                    mx::tests::compare_block(r, stated, list, kind, sizes[seed % 5], seed,
                                             tensor_amax, result);
                }
                if (r.rule->id != mx::scale::rule_id::two_level) break;
            }
            blocks += result.blocks;
            overflowed += result.dequant_overflow;
            CAPTURE(mx::codec::to_string(r), result.first, result.differences);
            CHECK(result.differences == 0);
        }
        CAPTURE(std::string(d.name));
        CHECK(blocks > 0);
    }
    CHECK(overflowed > 0);
}
