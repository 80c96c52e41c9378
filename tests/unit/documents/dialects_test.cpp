// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/report/members.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/catch.hpp"

using namespace mx;

namespace {

std::string name_in(const report::record& r) { return *report::member<std::string>(r, "name"); }

// A recipe of the dialect under its first rule and with its first element.
std::string recipe_text(const codec::dialect& d) {
    const std::string rule(codec::first_of(d.rules));
    const std::string_view scales = scale::find_scale_rule(rule)->scale_format;
    const std::string_view element = d.elements.empty() ? "e2m1" : codec::first_of(d.elements);
    return fmt::format("nvfp4:element={},scale_format={},scale={},round={},dialect={}", element,
                       codec::first_of(scales), rule, codec::first_of(d.roundings), d.name);
}

}  // namespace

TEST_CASE("mx explain lists every dialect, describes it, and recipes name it") {
    const report::document all = documents::dialects({});
    const auto names = documents::explained_names();
    REQUIRE(all.results.size() == codec::dialects().size());
    REQUIRE(all.sections[0].rows.size() == codec::dialects().size());
    for (std::size_t i = 0; i < codec::dialects().size(); ++i) {
        const codec::dialect& d = codec::dialects()[i];
        CAPTURE(std::string(d.name));
        CHECK(name_in(all.results[i]) == d.name);
        CHECK(name_in(all.sections[0].rows[i]) == d.name);
        CHECK(std::ranges::count(names, d.name) == 1);
        const report::document one = documents::explain({std::string(d.name), {}, {}});
        CHECK(name_in(*report::member<report::record>(one.head, "dialect")) == d.name);
        CHECK(codec::find_dialect(d.name) == &d);
        if (d.blocks) {
            CHECK(codec::parse_recipe(recipe_text(d)).by == &d);
        } else {
            CHECK_THROWS_AS(codec::parse_recipe(fmt::format("mxfp4:dialect={}", d.name)),
                            base::error);
        }
    }
}
