// SPDX-License-Identifier: Apache-2.0
// The data behind figures, read back from CSV.
#include "libmx/report/figure_data.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/catch.hpp"
#include "tests/unit/report/shared.hpp"

using namespace mx::report;

namespace {

using table = std::vector<std::vector<std::string>>;

// RFC 4180, read the way its grammar is written.
table read_csv(const std::string& text) {
    table lines(1);
    std::string field;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c != '"') {
                field += c;
            } else if (i + 1 < text.size() && text[i + 1] == '"') {
                field += text[++i];
            } else {
                quoted = false;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == ',') {
            lines.back().push_back(field);
            field.clear();
        } else if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
            lines.back().push_back(field);
            field.clear();
            lines.emplace_back();
            ++i;
        } else {
            field += c;
        }
    }
    lines.pop_back();
    return lines;
}

table data_of(plot what) { return read_csv(csv_of({"f", "", "", std::move(what), "", ""})); }

}  // namespace

TEST_CASE("numbers of a heat map read back exactly") {
    const std::vector<double> hard{0.1,  1.0 / 3,      5e-324, 1.7976931348623157e308,
                                   -0.0, 123456789.125};
    heat_map h;
    h.columns = {"a, \"b\"", "c"};
    for (const double x : hard) {
        h.rows.push_back("r");
        h.cells.push_back({x, {}});
    }
    h.rows.push_back("short");
    h.cells.push_back({no_number});
    const table t = data_of(h);
    REQUIRE(t.size() == hard.size() + 2);
    CHECK(t[0] == std::vector<std::string>{"row", "a, \"b\"", "c"});
    for (std::size_t i = 0; i < hard.size(); ++i) {
        REQUIRE(t[i + 1].size() == 3);
        const double back = std::strtod(t[i + 1][1].c_str(), nullptr);
        CHECK(back == hard[i]);
        CHECK(std::signbit(back) == std::signbit(hard[i]));
        CHECK(t[i + 1][2].empty());
    }
    CHECK(t.back() == std::vector<std::string>{"short", "", ""});
}

TEST_CASE("lines are listed point by point, with gaps and zones") {
    line_chart l;
    l.x.title = "layer";
    l.y.title = "R-MSE";
    l.lines = {{"one\ntwo", {{0, 0.5, ""}, {1, {}, "gap"}}}, {"b", {{2, 0.25, ""}}, "wq"}};
    l.zones = {{"early", 0, 1}, {"first", 0, 0}};
    const table t = data_of(l);
    REQUIRE(t.size() == 4);
    CHECK(t[0] == std::vector<std::string>{"panel", "line", "layer", "R-MSE", "low", "high",
                                           "label", "zone"});
    CHECK(t[1] ==
          std::vector<std::string>{"", "one\\x0atwo", "0", "0.5", "", "", "", "early; first"});
    CHECK(t[2] == std::vector<std::string>{"", "one\\x0atwo", "1", "", "", "", "gap", "early"});
    CHECK(t[3] == std::vector<std::string>{"wq", "b", "2", "0.25", "", "", "", ""});
}

TEST_CASE("histograms are listed with counts and shares") {
    bar_chart b;
    b.panels = {{"s", {1, 1.5, 2}, {3, 1}, {"low"}, {{"clamp", 1.75, 2}}},
                {"none", {0, 1}, {0}, {}, {}}};
    const table t = data_of(b);
    REQUIRE(t.size() == 4);
    CHECK(t[1] == std::vector<std::string>{"s", "1", "1.5", "3", "0.75", "low", ""});
    CHECK(t[2] == std::vector<std::string>{"s", "1.5", "2", "1", "0.25", "", "clamp"});
    CHECK(t[3] == std::vector<std::string>{"none", "0", "1", "0", "", "", ""});
}

TEST_CASE("scatter plots are listed with their path") {
    scatter_chart s;
    s.marks = {{{4, 20.5, "mxfp4", 20, 21}, "fp4"}};
    s.path = {{4, 20.5}, {8, no_number}};
    s.path_name = "front";
    const table t = data_of(s);
    REQUIRE(t.size() == 4);
    CHECK(t[0] == std::vector<std::string>{"group", "label", "x", "y", "low", "high", "zone"});
    CHECK(t[1] == std::vector<std::string>{"fp4", "mxfp4", "4", "20.5", "20", "21", ""});
    CHECK(t[2] == std::vector<std::string>{"front", "", "4", "20.5", "", "", ""});
    CHECK(t[3] == std::vector<std::string>{"front", "", "8", "", "", "", ""});
}

TEST_CASE("stacked bars are a table of categories and parts") {
    const table t = data_of(stacked_chart{{"c"}, {"p", "q"}, {}, {{1.5, -2.0}}});
    CHECK(t == table{{"category", "p", "q"}, {"c", "1.5", "-2"}});
    CHECK(data_of(stacked_chart{}) == table{{"category"}});
}
