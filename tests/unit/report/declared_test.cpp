// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "libmx/report/declared.hpp"
#include "libmx/report/json_line.hpp"
#include "tests/catch.hpp"

using namespace mx::report;

namespace {

struct point {
    int x;
    std::optional<double> y;
};
constexpr std::array point_members = std::to_array<declared<point>>({
    {"x", "ordinal", "", [](auto& p) { return p.x; }},
    {"y", "share", "", [](auto& p) { return p.y; }, false},
});

// The schema as text without spaces.
std::string text_of(const document_schema& s) {
    std::string text = s.text();
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
}

bool states(const document_schema& s, std::string_view text) {
    return text_of(s).find(text) != std::string::npos;
}

const document_schema empty("mx.points/1", "", "");

}  // namespace

TEST_CASE("records and the schema of records come from one declaration") {
    CHECK(json_line(written(point_members, {3, 0.5})) == R"({"x":3,"y":0.5})");
    CHECK(json_line(written(point_members, {3, {}})) == R"({"x":3})");
    const std::array some{point{1, {}}, point{2, {}}};
    CHECK(json_line({{"all", listed(point_members, some)}}) == R"({"all":[{"x":1},{"x":2}]})");
    CHECK(states(document_schema(empty).define("point", point_members),
                 R"("point":{"type":"object","properties":{"x":{"type":"integer","minimum":1},)"
                 R"("y":{"type":"number","minimum":0,"maximum":1}},"required":["x"],)"
                 R"("additionalProperties":false})"));
}

TEST_CASE("a definition has the members of another and more") {
    CHECK(states(document_schema(empty).define_more("more", "@other#point", point_members),
                 R"("required":["x"],"$ref":"other.json#/$defs/point",)"
                 R"("unevaluatedProperties":false})"));
}

TEST_CASE("a text matches a pattern") {
    const auto member = [](const char* type) {
        return document_schema(empty).member({"code", type, ""});
    };
    CHECK(states(member("/^a|b$/"), R"("code":{"type":"string","pattern":"^a|b$"})"));
    CHECK(states(member("[/^a/?]"), R"("items":{"type":["string","null"],"pattern":"^a"})"));
}

TEST_CASE("lists of members keep their texts, and some records lack members") {
    member_list list;
    list.add(point_members, "first_").add_of_some(point_members);
    list.add({list.keep(std::string("name")), list.keep(std::string("count")), "", false});
    CHECK(states(document_schema(empty).define("p", list), R"("required":["first_x"])"));
    CHECK(states(document_schema(empty).define("p", list), R"("name":{"type":"integer")"));
}

TEST_CASE("members that come together need each other, and conditions are stated") {
    constexpr std::array three{member_type{"a", "count", ""}, member_type{"b", "count", ""},
                               member_type{"c", "count", ""}};
    const document_schema s = document_schema(empty).members_together(three);
    CHECK(states(s, R"("required":["schema","tool"])"));
    CHECK(states(s, R"("dependentRequired":{"a":["b","c"],"b":["a"],"c":["a"]})"));
    CHECK(states(document_schema(empty).condition("not", {{"required", list{std::string("a")}}}),
                 R"("not":{"required":["a"]})"));
}
