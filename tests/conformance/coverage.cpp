// SPDX-License-Identifier: Apache-2.0
// Reports rows of a list that nothing outside the list confirms.
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/rounding.hpp"
#include "libmx/oracle/value_list.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/catch.hpp"

namespace {

bool typed_table_exists(std::string_view name) {
    return std::filesystem::exists(std::string(MX_SOURCE_DIR) + "/datasets/vectors/decode/" +
                                   std::string(name) + ".txt");
}

// Describes roundings by their results for two positive and two negative numbers between the
// neighbours 2 and 3 of E2M1 (2.25, 2.5, -2.25, -2.5) with the largest draw: add a line for a new
// rounding.
struct rounding_statement {
    std::string_view name;
    int quanta[4];  ///< in halves
};

constexpr rounding_statement roundings[] = {
    {"rtne", {4, 4, -4, -4}},
    {"away", {4, 6, -4, -6}},
    {"zero", {4, 4, -4, -4}},
    {"up", {6, 6, -4, -4}},
    {"down", {4, 4, -6, -6}},
    {"stochastic", {6, 6, -6, -6}},
    {"nearest-ties-to-zero", {4, 4, -4, -4}},
};

}  // namespace

TEST_CASE("every format has a typed table") {
    for (const auto& f : mx::format::element_formats) {
        INFO("add datasets/vectors/decode/" << f.name << ".txt, typed from the specification");
        CHECK(typed_table_exists(f.name));
    }
    for (const auto& f : mx::format::scale_formats) {
        if (!f.has_codes()) continue;
        INFO("add datasets/vectors/decode/" << f.name << ".txt, typed from the specification");
        CHECK(typed_table_exists(f.name));
    }
}

TEST_CASE("every scale rule is stated in the oracle, and nothing else is") {
    std::set<std::string> listed;
    for (const auto& rule : mx::scale::scale_rules) {
        INFO("state scale rule '" << rule.name << "' in libmx/oracle/scale_rules.cpp");
        CHECK(mx::app::oracle_rule(rule).has_value());
        listed.insert(std::string(rule.name));
    }
    std::set<std::string> stated;
    for (const auto& [name, id] : mx::oracle::scale_rule_names) stated.insert(std::string(name));
    CHECK(stated == listed);
}

TEST_CASE("every dialect is stated in the oracle, and nothing else is") {
    std::set<std::string> listed;
    for (const auto& d : mx::codec::dialects()) {
        INFO("state dialect '" << d.name << "' in libmx/oracle/dialects.cpp");
        const mx::oracle::dialect* stated = mx::oracle::find_dialect(d.name);
        REQUIRE(stated != nullptr);
        CHECK(stated->blocks == d.blocks);
        const bool converts_scales = d.e8m0.value != mx::codec::e8m0_cast::none;
        CHECK((stated->to_e8m0 != nullptr) == converts_scales);
        listed.insert(std::string(d.name));
    }
    std::set<std::string> stated;
    for (const auto& d : mx::oracle::dialects()) stated.insert(std::string(d.name));
    CHECK(stated == listed);
}

TEST_CASE("every element format has its values in the oracle") {
    for (const auto& f : mx::format::element_formats) {
        INFO("the codes of " << f.name << " as libmx/oracle/decode.cpp reads them");
        const auto list = mx::oracle::list_values(f, true);
        std::set<int> codes;
        for (const auto& v : list.values) codes.insert(v.code);
        codes.erase(-1);
        // Every finite code but the second zero.
        std::size_t finite = 0;
        for (unsigned code = 0; code < 1u << mx::oracle::code_bits(f); ++code) {
            const auto d = mx::oracle::decode(f, code);
            const bool minus_zero = d.magnitude == 0 && d.negative;
            finite += d.what == mx::oracle::number_class::finite && !minus_zero ? 1 : 0;
        }
        CHECK(codes.size() == finite);
    }
}

TEST_CASE("every rounding is stated in the oracle") {
    const auto list = mx::oracle::list_values(*mx::format::find_element_format("e2m1"), false);
    for (const auto& row : mx::format::roundings) {
        INFO("state what rounding '" << row.name
                                     << "' does, here and in libmx/oracle/rounding.cpp");
        const rounding_statement* found = nullptr;
        for (const rounding_statement& r : roundings) {
            if (r.name == row.name) found = &r;
        }
        REQUIRE(found != nullptr);
        const float inputs[] = {2.25f, 2.5f, -2.25f, -2.5f};
        for (int i = 0; i < 4; ++i) {
            const auto q = mx::oracle::round_to(list, mx::oracle::ticks_of(inputs[i]),
                                                mx::oracle::ticks_of_power(0),
                                                std::signbit(inputs[i]), {row.id, {}, 32}, ~0u);
            CHECK(q.quanta == found->quanta[i]);
        }
    }
}
