// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

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

struct reading {
    bool taken;
    std::optional<double> value;
    std::string note;
};
constexpr std::array reading_members = std::to_array<declared<reading>>({
    {"note", "string", "",
     [](auto& r) { return r.note.empty() ? mx::report::value() : to_value(r.note); }, false},
    {"value", "number?", "", [](auto& r) { return only_if(r.taken, r.value); }, false},
    {"words", "any", "", [](auto&) { return "x"; }},
});

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

TEST_CASE("members that are not always there are left out, and null where they may be") {
    CHECK(json_line(written(reading_members, {false, 2.0, ""})) == R"({"words":"x"})");
    CHECK(json_line(written(reading_members, {true, {}, "cold"})) ==
          R"({"note":"cold","value":null,"words":"x"})");
    const std::vector<reading> two{{true, 1.5, ""}, {false, {}, ""}};
    CHECK(json_line({{"all", listed(reading_members, two)}}) ==
          R"({"all":[{"value":1.5,"words":"x"},{"words":"x"}]})");
}

TEST_CASE("schemas state any value, one of several records, and tools that need not be named") {
    const std::string text = document_schema("mx.a/1", "a", "", false)
                                 .member({"results", "[#reading|#other]", ""})
                                 .define("reading", reading_members)
                                 .text();
    CHECK(text.find(R"("words": {})") != std::string::npos);
    CHECK(text.find("\"anyOf\": [\n") != std::string::npos);
    CHECK(text.find(R"("$ref": "#/$defs/other")") != std::string::npos);
    CHECK(text.find("\"required\": [\n    \"schema\",\n    \"results\"\n  ]") != std::string::npos);
    CHECK(text.find("\"required\": [\n        \"words\"\n      ]") != std::string::npos);
}
