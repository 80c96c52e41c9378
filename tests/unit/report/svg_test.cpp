// SPDX-License-Identifier: Apache-2.0
// Figures as SVG: well formed, complete, harmless, the same every time.
#include "libmx/report/svg/svg.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "libmx/report/markup.hpp"
#include "tests/catch.hpp"
#include "tests/unit/report/shared.hpp"
#include "tests/unit/report/svg_page.hpp"

using namespace mx::report;

namespace {

figure made(plot what, const std::string& id = "fig") {
    return {id, "Title", "", std::move(what), "", ""};
}

axis named_axis(const std::string& title, bool log = false, bool share = false) {
    axis a;
    a.title = title;
    a.log = log;
    a.share = share;
    return a;
}

heat_map a_heat_map(std::size_t rows, std::size_t columns) {
    heat_map h;
    h.value = named_axis("R-MSE");
    for (std::size_t c = 0; c < columns; ++c) h.columns.push_back("recipe-" + std::to_string(c));
    for (std::size_t r = 0; r < rows; ++r) {
        h.rows.push_back(std::to_string(r));
        h.cells.emplace_back();
        for (std::size_t c = 0; c < columns; ++c) {
            h.cells.back().push_back(0.01 * static_cast<double>(1 + r * columns + c));
        }
    }
    return h;
}

line_chart two_lines() {
    line_chart l;
    l.x = named_axis("layer");
    l.y = named_axis("R-MSE");
    l.lines = {{"a", {{0, 1.0, ""}, {1, {}, ""}, {2, 3.0, ""}, {3, 2.0, ""}}},
               {"b", {{0, 2.0, ""}, {1, 2.5, "marked"}, {2, no_number, ""}}}};
    l.zones = {{"early", 0, 1}};
    return l;
}

bar_chart histograms(std::size_t panels) {
    bar_chart b;
    b.x = named_axis("mantissa");
    b.y = named_axis("share of blocks");
    for (std::size_t k = 0; k < panels; ++k) {
        b.panels.push_back({"p" + std::to_string(k),
                            {1, 1.25, 1.5, 1.75, 2},
                            {6, 0, 1, 1},
                            {},
                            {{"clamp zone", 1.75, 2}}});
    }
    return b;
}

scatter_chart points() {
    scatter_chart s;
    s.x = named_axis("bits");
    s.y = named_axis("SQNR");
    s.marks = {{{4, 20.0, "one"}, "g", true}, {{6, 30.0, "two"}, "h", true}, {{8, {}, "no"}, "h"}};
    s.path = {{4, 20}, {6, 30}};
    s.path_name = "front";
    return s;
}

stacked_chart stack() {
    return {{"c0", "c1"}, {"p0", "p1"}, named_axis("error"), {{1.0, 2.0}, {3.0, {}}}};
}

std::vector<figure> one_of_each() {
    return {made(a_heat_map(3, 2)), made(two_lines()), made(histograms(3)), made(points()),
            made(stack())};
}

parsed_markup parsed(const figure& f) {
    const parsed_markup m = parse_markup(svg::element_of(f));
    INFO(m.problem);
    CHECK(m.problem.empty());
    return m;
}

// The tooltips of the marks; the first title is the figure's.
std::vector<std::string> titles(const parsed_markup& m) {
    std::vector<std::string> out;
    for (const element* e : m.all("title")) out.push_back(e->text);
    out.erase(out.begin());
    return out;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

TEST_CASE("the parser that judges figures finds faults") {
    for (const std::string bad :
         {"<a>", "<a></b>", "<a b=c/>", "<a b=\"<\"/>", "<a>&nbsp;</a>", "<a>\x01</a>", "<a/><b/>",
          "<a b=\"1\" b=\"2\"/>", "x<a/>", "<a"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_markup(bad).problem.empty());
    }
    CHECK(parse_markup("<a b=\"1\"><c/>x &lt; y</a>\n").problem.empty());
}

TEST_CASE("text is escaped for markup") {
    CHECK(escaped("a<b>&\"c'") == "a&lt;b&gt;&amp;&quot;c&#39;");
    CHECK(escaped("a\tb\nc\r") == "a&#9;b&#10;c&#13;");
    CHECK(escaped(std::string("a\x1b\0b", 4)) == "a\\x1b\\x00b");
    CHECK(escaped("a\xff"
                  "b\xe2\x82") ==
          "a\xef\xbf\xbd"
          "b\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(escaped("\xed\xa0\x80").find('\xed') == std::string::npos);
    CHECK(escaped("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80") ==
          "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    CHECK(escaped("a\xe2\x80\xae"
                  "b")
              .find('\xe2') == std::string::npos);
}

TEST_CASE("every kind of figure is one well-formed accessible element") {
    for (const figure& f : one_of_each()) {
        CAPTURE(f.what.index());
        const parsed_markup m = parsed(f);
        REQUIRE(m.elements.size() > 10);
        const element& root = m.elements[0];
        CHECK(root.name == "svg");
        CHECK(root.attributes.at("role") == "img");
        CHECK(root.attributes.at("viewBox").substr(0, 8) == "0 0 460 ");
        CHECK(root.attributes.at("aria-labelledby") == "fig--title fig--desc");
        CHECK(m.all("title").front()->text == "Title");
        CHECK(m.all("desc").size() == 1);
    }
}

TEST_CASE("figures refer to nothing but themselves") {
    for (const figure& f : one_of_each()) {
        const std::string text = svg::element_of(f);
        const parsed_markup m = parsed(f);
        CAPTURE(f.what.index());
        for (const char* word : {"script", "style=", "http", "href", "onload"}) {
            CAPTURE(word);
            CHECK(text.find(word) == std::string::npos);
        }
        std::set<std::string> ids;
        for (const element& e : m.elements) {
            const auto id = e.attributes.find("id");
            if (id == e.attributes.end()) continue;
            CHECK(ids.insert(id->second).second);
            CHECK(id->second.substr(0, 5) == "fig--");
        }
        std::size_t references = 0;
        for (const element& e : m.elements) {
            const auto fill = e.attributes.find("fill");
            if (fill == e.attributes.end()) continue;
            ++references;
            REQUIRE(fill->second.substr(0, 5) == "url(#");
            CHECK(ids.count(fill->second.substr(5, fill->second.size() - 6)) == 1);
        }
        CHECK(references == count_of(text, "url("));
    }
    const std::string odd = svg::element_of(made(stack(), "A b\")<"));
    CHECK(odd.find("url(#--b-----p0)") != std::string::npos);
}

TEST_CASE("every class is in the style sheet, and the sheet is balanced") {
    const std::string css(svg::style_sheet());
    CHECK(count_of(css, "{") == count_of(css, "}"));
    CHECK(css.find("prefers-color-scheme:dark") != std::string::npos);
    CHECK(css.find("@media print") != std::string::npos);
    CHECK(css.find("url(") == std::string::npos);
    for (const figure& f : one_of_each()) {
        for (const element& e : parsed(f).elements) {
            const auto at = e.attributes.find("class");
            if (at == e.attributes.end()) continue;
            std::istringstream classes(at->second);
            for (std::string one; classes >> one;) {
                CAPTURE(one);
                CHECK(css.find("." + one) != std::string::npos);
            }
        }
    }
}

TEST_CASE("every custom property that is used is defined for light and dark") {
    const std::string css(svg::style_sheet());
    for (auto at = css.find("var("); at != std::string::npos; at = css.find("var(", at + 1)) {
        const std::string name = css.substr(at + 4, css.find(')', at) - at - 4);
        CAPTURE(name);
        CHECK(count_of(css, name + ":") == 4);  // light, dark twice, print
    }
}

TEST_CASE("the same figure gives the same bytes") {
    const std::vector<figure> once = one_of_each();
    const std::vector<figure> again = one_of_each();
    for (std::size_t i = 0; i < once.size(); ++i)
        CHECK(svg::element_of(once[i]) == svg::element_of(again[i]));
}

TEST_CASE("a heat map has a cell per row and column") {
    heat_map h = a_heat_map(4, 3);
    h.cells[1][2] = {};
    h.cells[2][0] = inf;
    const std::vector<std::string> says = titles(parsed(made(h)));
    CHECK(says.size() == 12);
    CHECK(has(says, "0, recipe-0: 0.01"));
    CHECK(has(says, "1, recipe-2: undefined"));
    CHECK(has(says, "2, recipe-0: undefined"));
    const std::string text = svg::element_of(made(h));
    CHECK(text.find(">worse \u2192<") != std::string::npos);
    CHECK(text.find(">0.08<") != std::string::npos);
    // The worst is furthest from the paper, whichever end it is.
    const auto shade_of = [](const std::string& svg, const std::string& title) {
        const auto at = svg.find("<title>" + title);
        return svg[svg.rfind("class=\"h", at) + 8];
    };
    CHECK(shade_of(text, "0, recipe-0:") == '0');
    CHECK(shade_of(text, "3, recipe-2:") == '9');
    h.larger_is_worse = false;
    CHECK(shade_of(svg::element_of(made(h)), "0, recipe-0:") == '9');
}

TEST_CASE("large heat maps stay small") {
    const std::string text = svg::element_of(made(a_heat_map(300, 20)));
    CHECK(text.size() < 600000);
    CHECK(parse_markup(text).problem.empty());
    CHECK(count_of(text, "<title>") == 6000);
    CHECK(count_of(text, "class=\"end\"") == 60);  // every fifth row is named
}

TEST_CASE("lines stop at what is undefined") {
    const parsed_markup m = parsed(made(two_lines()));
    std::vector<std::string> lines;
    for (const element* e : m.all("path")) {
        const auto at = e->attributes.find("class");
        if (at != e->attributes.end() && at->second == "line") {
            lines.push_back(e->attributes.at("d"));
        }
    }
    REQUIRE(lines.size() == 2);
    CHECK(count_of(lines[0], "M") == 2);
    CHECK(count_of(lines[0], "L") == 1);
    CHECK(count_of(lines[1], "M") == 1);
    CHECK(count_of(lines[1], "L") == 1);
    const std::vector<std::string> says = titles(m);
    CHECK(says.size() == 6);  // three points, two points, a zone
    CHECK(has(says, "a, layer 2: 3"));
    CHECK(has(says, "b, marked: 2.5"));
    CHECK(has(says, "early, from 0, to 1"));
}

TEST_CASE("bands lie between the low and the high of points, levels across the plot") {
    line_chart l = two_lines();
    l.lines[0].points = {{0, 1.0, "", 0.5, 2.0}, {1, 2.0, "", 1.0, 4.0}, {2, 3.0, ""}};
    l.levels = {{"floor", 1.5}, {"far away", no_number}};
    const std::string text = svg::element_of(made(l));
    CHECK(count_of(text, "class=\"band\"") == 1);
    CHECK(count_of(text, "class=\"level\"") == 1);
    CHECK(count_of(text, "far away") == 0);
    const std::vector<std::string> says = titles(parsed(made(l)));
    CHECK(has(says, "a, layer 1: 2 (1 to 4)"));
    CHECK(has(says, "floor: 1.5"));
}

TEST_CASE("legends say what the signs mean, outside of the drawing") {
    CHECK(svg::legend_of(made(a_heat_map(2, 2))).empty());
    const parsed_markup m = parse_markup(svg::legend_of(made(two_lines())));
    CHECK(m.problem.empty());
    REQUIRE(m.all("li").size() == 2);
    CHECK(m.all("span").front()->text == "a");
    CHECK(m.all("svg").front()->attributes.at("aria-hidden") == "true");
    CHECK(svg::element_of(made(two_lines())).find(">a<") == std::string::npos);
}

TEST_CASE("a waterfall's bars begin where the last one ended") {
    stacked_chart k{{"c0", "c1"}, {"p"}, named_axis("error"), {{3.0}, {1.0}}, true};
    const parsed_markup m = parsed(made(k));
    std::vector<double> ends;
    for (const element* e : m.all("path")) {
        const auto at = e->attributes.find("fill");
        if (at == e->attributes.end()) continue;
        const std::string d = e->attributes.at("d");
        ends.push_back(std::stod(d.substr(1)));
        ends.push_back(std::stod(d.substr(1)) + std::stod(d.substr(d.find('h') + 1)));
    }
    REQUIRE(ends.size() == 4);
    CHECK(ends[2] == Approx(ends[1]).margin(0.02));
    CHECK((ends[1] - ends[0]) == Approx(3 * (ends[3] - ends[2])).margin(0.05));
}

TEST_CASE("cells that are worse than the limit are marked and shaded apart") {
    heat_map h = a_heat_map(2, 2);  // 0.01 to 0.04
    h.limit = 0.025;
    h.notes = {{"why"}};
    const std::string text = svg::element_of(made(h));
    CHECK(count_of(text, " miss\"") == 2);
    CHECK(text.find("outlined: worse than 0.025") != std::string::npos);
    CHECK(has(titles(parsed(made(h))), "0, recipe-0: 0.01; why"));
    h.larger_is_worse = false;
    h.limit = 0.04;
    CHECK(count_of(svg::element_of(made(h)), " miss\"") == 3);
}

TEST_CASE("names of zones that lie together have a row each") {
    line_chart l = two_lines();
    l.zones = {{"early", 0, 1}, {"also early", 0, 1}, {"late", 2.5, 3}, {"elsewhere", 7, 8}};
    std::map<std::string, std::string> height;
    const parsed_markup m = parsed(made(l));
    for (const element* e : m.all("text")) height[e->text] = e->attributes.at("y");
    CHECK(height.at("early") != height.at("also early"));
    CHECK(height.at("early") == height.at("late"));
    CHECK_FALSE(height.contains("elsewhere"));
}

TEST_CASE("lines of a name look the same in every panel") {
    line_chart l = two_lines();
    l.lines[0].panel = "wq";
    l.lines[1].panel = "wk";
    l.lines.push_back({"a", {{0, 1.0, ""}, {1, 2.0, ""}}, "wk"});
    l.levels = {{"limit", 2.5}};
    const figure f = made(l);
    const std::string text = svg::element_of(f);
    for (const char* name : {">wq<", ">wk<", ">limit<"}) CHECK(count_of(text, name) == 1);
    CHECK(count_of(text, "class=\"level\"") == 2);
    CHECK(count_of(svg::legend_of(f), "<li>") == 2);
    // Both lines named "a" have the first class: a band and a line each.
    CHECK(count_of(text, "class=\"s1\"") == 4);
    CHECK(titles(parsed(f)).size() == 3 + 2 + 2 + 2 + 2);  // points, levels and the zone
}

TEST_CASE("a dot plot has a row per name and a line per range") {
    scatter_chart s;
    s.x = named_axis("gap");
    s.rows = {"bottom", "top"};
    s.marks = {{{1, 0.0, "bottom", 0.5, 1.5}, "g"}, {{2, 1.0, "top"}, "g"}};
    const figure f = made(s);
    std::map<std::string, double> height;
    const parsed_markup m = parsed(f);
    for (const element* e : m.all("text")) height[e->text] = std::stod(e->attributes.at("y"));
    REQUIRE(height.contains("bottom"));
    CHECK(height.at("top") < height.at("bottom"));
    CHECK(has(titles(m), "bottom, g: gap 1 (0.5 to 1.5)"));
    CHECK(count_of(svg::element_of(f), "class=\"range\"") == 1);
}

TEST_CASE("what is beyond a logarithmic axis is drawn at its end") {
    line_chart l;
    l.y = named_axis("rate", true);
    l.x = named_axis("step");
    l.lines = {{"a", {{0, 0.1, ""}, {1, 0.0, ""}, {2, 0.001, ""}}}};
    const std::vector<std::string> says = titles(parsed(made(l)));
    CHECK(says.size() == 3);
    CHECK(has(says, "a, step 1: 0"));
    for (auto& at : l.lines[0].points) at.y = 0;
    CHECK(titles(parsed(made(l))).size() == 3);
}

TEST_CASE("histograms draw a bar per count in a panel per series") {
    const figure f = made(histograms(5));
    const std::vector<std::string> says = titles(parsed(f));
    CHECK(says.size() == 5 * 4);  // three bars and a zone each
    CHECK(has(says, "1 to 1.25: 75%, count 6"));
    CHECK(has(says, "clamp zone, from 1.75, to 2"));
    CHECK(count_of(svg::element_of(f), ">clamp zone<") == 5);
}

TEST_CASE("scatter plots name their points and draw their path") {
    scatter_chart s = points();
    const std::string text = svg::element_of(made(s));
    const std::vector<std::string> says = titles(parsed(made(s)));
    CHECK(says.size() == 3);
    CHECK(has(says, "one, g: bits 4, SQNR 20"));
    CHECK(has(says, "front"));
    CHECK(text.find(">one</text>") != std::string::npos);
    CHECK(text.find(">no</text>") == std::string::npos);
    const auto front = [&] {
        for (const element& e : parsed(made(s)).elements) {
            const auto at = e.attributes.find("class");
            if (at != e.attributes.end() && at->second == "line front") return e.attributes.at("d");
        }
        return std::string();
    };
    CHECK(front().find_first_of("HV") == std::string::npos);
    CHECK(front().find('L') != std::string::npos);
    s.stepped = true;
    CHECK(front().find('H') < front().find('V'));
    CHECK(front().find('L') == std::string::npos);
}

TEST_CASE("groups that are named first keep their sign, marks or not") {
    scatter_chart s = points();
    const std::string as_they_come = svg::element_of(made(s));
    s.groups = {"absent"};
    const std::string text = svg::element_of(made(s));
    CHECK(svg::legend_of(made(s)).find(">absent</span>") != std::string::npos);
    CHECK(as_they_come.find("s3 mark") == std::string::npos);  // g and h are the first and second
    CHECK(text.find("s3 mark") != std::string::npos);
}

TEST_CASE("stacked bars have their parts one after the other") {
    const parsed_markup m = parsed(made(stack()));
    const std::vector<std::string> says = titles(m);
    CHECK(says.size() == 4);
    CHECK(has(says, "c0, p1: 2"));
    CHECK(has(says, "c1, p1: undefined"));
    const auto bar = [&](const std::string& fill) {
        for (const element* e : m.all("path")) {
            const auto at = e->attributes.find("fill");
            if (at == e->attributes.end() || at->second != fill) continue;
            const std::string d = e->attributes.at("d");
            const std::size_t width = d.find('h');
            return std::pair(std::stod(d.substr(1)), std::stod(d.substr(width + 1)));
        }
        return std::pair(0.0, 0.0);
    };
    const auto [first, first_width] = bar("url(#fig--p0)");
    const auto [second, second_width] = bar("url(#fig--p1)");
    CHECK(first_width > 0);
    CHECK(second == Approx(first + first_width).margin(0.02));
    CHECK(second_width == Approx(2 * first_width).margin(0.02));
    // Both patterns of parts and that of the undefined.
    CHECK(m.all("pattern").size() == 3);
}

TEST_CASE("figures without data say so") {
    heat_map undefined = a_heat_map(1, 1);
    undefined.cells[0][0] = no_number;
    for (const figure& f :
         {made(heat_map()), made(line_chart()), made(bar_chart()), made(scatter_chart()),
          made(stacked_chart()), made(histograms(0)), made(a_heat_map(0, 3))}) {
        CAPTURE(f.what.index());
        CHECK(parsed(f).all("text").back()->text == "nothing to show");
    }
    CHECK(has(titles(parsed(made(undefined))), "0, recipe-0: undefined"));
}

TEST_CASE("what is not finite never reaches the text, whatever the figure") {
    heat_map h = a_heat_map(2, 2);
    h.cells = {{no_number, inf}, {-inf}};  // and rows that are too short
    line_chart l = two_lines();
    l.lines[0].points[0] = {no_number, 1.0, ""};
    l.lines[0].points[2] = {inf, -inf, ""};
    l.zones = {{"z", -inf, no_number}, {"y", -inf, inf}};
    l.y.low = no_number;
    l.x.high = inf;
    bar_chart b = histograms(1);
    b.panels[0].counts = {no_number, inf, -1, 4, 5, 6};
    b.panels[0].edges = {-inf, 0, 1, 2, inf};
    scatter_chart s = points();
    s.marks.push_back({{inf, no_number, "x"}, "g", true});
    s.path.emplace_back(no_number, inf);
    stacked_chart k = stack();
    k.cells = {{no_number, inf}, {-inf, 1e308}};
    for (const figure& f : {made(h), made(l), made(b), made(s), made(k)}) {
        CAPTURE(f.what.index());
        parsed(f);
        std::string text = svg::element_of(f);
        CHECK(text.find("nan") == std::string::npos);
        CHECK(text.find("inf") == std::string::npos);
    }
}

TEST_CASE("names from files cannot break out of a figure") {
    const std::string name = "</text><script>alert('\"&\x01\xff\n";
    heat_map h = a_heat_map(1, 1);
    h.rows[0] = h.columns[0] = h.value.title = h.value.unit = name;
    line_chart l = two_lines();
    l.lines[0].name = l.lines[1].points[0].label = l.zones[0].label = l.y.title = name;
    bar_chart b = histograms(1);
    b.panels[0].name = b.panels[0].zones[0].label = b.x.title = name;
    b.panels[0].labels = {name};
    scatter_chart s = points();
    s.marks[0].group = s.marks[0].at.label = s.path_name = name;
    stacked_chart k = stack();
    k.parts[0] = k.categories[0] = name;
    for (figure f : {made(h), made(l), made(b), made(s), made(k)}) {
        f.title = f.caption = name;
        CAPTURE(f.what.index());
        parsed(f);
        CHECK(svg::element_of(f).find("<script") == std::string::npos);
    }
}

TEST_CASE("many rows, columns, lines and panels still make a figure") {
    for (const std::size_t columns : {1u, 5u, 12u, 24u}) parsed(made(a_heat_map(40, columns)));
    line_chart l = two_lines();
    for (int i = 0; i < 60; ++i)
        l.lines.push_back({"line " + std::to_string(i), {{1, 1.0 + i, ""}}});
    CHECK(titles(parsed(made(l))).size() == 66);
    CHECK(titles(parsed(made(histograms(24)))).size() == 24 * 4);
}
