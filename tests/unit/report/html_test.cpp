// SPDX-License-Identifier: Apache-2.0
// The page as bytes; tests/browser tests it in a browser.
#include <cmath>
#include <limits>
#include <string>

#include "libmx/report/html/assets.hpp"
#include "libmx/report/html/text.hpp"
#include "libmx/report/writers.hpp"
#include "tests/catch.hpp"
#include "tests/unit/report/shared.hpp"

using namespace mx::report;

namespace {

std::string page_of(const document& d) {
    std::string out;
    write_html(d, {}, [&](std::string_view text) { out += text; });
    return out;
}

document with_section(section s) {
    document d;
    d.sections.push_back(std::move(s));
    return d;
}

bool has(const std::string& text, const std::string& word) { return count_of(text, word) > 0; }

explorer small_explorer() {
    explorer e;
    e.row_title = "tensor";
    e.rows = {"a", "b", "c", "d"};
    e.classes = {"weight", "norm", "weight", "norm"};
    e.columns = {"one", "two"};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    e.metrics = {
        {"nrmse", "NRMSE", "", "what it is", false, true, 4, {{1, 2, nan, 4}, {7, nan, nan, 4}}},
        {"rate", "rate", "", "", true, false, 4, {{0, 0, 0, 0}, {1, 0.5, 0.25, 0}}}};
    return e;
}

}  // namespace

TEST_CASE("Base64 is that of RFC 4648") {
    CHECK(html::base64("") == "");
    CHECK(html::base64("f") == "Zg==");
    CHECK(html::base64("fo") == "Zm8=");
    CHECK(html::base64("foo") == "Zm9v");
    CHECK(html::base64("foobar") == "Zm9vYmFy");
    CHECK(html::base64("\xff\xfe\xfd") == "//79");
    // SHA-256 of nothing, FIPS 180-4.
    CHECK(html::policy_hash("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") ==
          "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

TEST_CASE("Columns of a page are little-endian float32, a constant one stands once") {
    const float values[] = {1.0f, -2.0f, 1.0f, 1.0f};
    CHECK(html::base64_floats(std::span(values).first(2)) == "AACAPwAAAMA=");
    CHECK(html::base64_floats(std::span(values).last(2)) == "AACAPw==");
    const float zeros[] = {0.0f, -0.0f};
    CHECK(html::base64_floats(zeros) == "AAAAAAAAAIA=");
}

TEST_CASE("Text of a page cannot become markup") {
    CHECK(html::shown("<b> & \"'") == "&lt;b&gt; &amp; &quot;&#39;");
    CHECK(html::shown("\xff\xe2\x80\xa8\n") == "\\xff\\xe2\\x80\\xa8\\x0a");
    CHECK(html::shown_name("a.b/<") == "a.<wbr>b/<wbr>&lt;");
    CHECK(html::shown_name("mxfp8_e5m2") == "mxfp8_<wbr>e5m2");
    CHECK(html::shown_words("has 1,024: (mxfp4:scale=even,block=1x16 <)") ==
          "has 1,024: (mxfp4:scale=even,<wbr>block=1x16 &lt;)");
    CHECK(html::shown_title("clamp %\nbefore") == "clamp %<br>before");
    CHECK(html::shown_title("\nafter") == "after");
    CHECK(html::quoted("</script>&\"\\") == "\"\\u003c/script\\u003e\\u0026\\\"\\\\\"");
}

TEST_CASE("Anchors are unique and harmless") {
    html::anchors a;
    CHECK(a.claim("All tensors: <mxfp4>") == "all-tensors-mxfp4");
    CHECK(a.claim("all tensors mxfp4!") == "all-tensors-mxfp4-2");
    CHECK(a.claim("\xc3\xbc") == "part");
    CHECK(a.claim("") == "part-2");
}

TEST_CASE("The script and the style sheet can stand in a page") {
    CHECK_FALSE(has(std::string(html::page_js().text), "</"));
    CHECK_FALSE(has(std::string(html::page_js().text), "<!--"));
    CHECK_FALSE(has(std::string(html::page_css().text), "</"));
    CHECK_FALSE(has(std::string(html::page_css().text), "url("));
    CHECK(html::page_js().sha256.size() == 64);
}

TEST_CASE("A page names itself, its policy and nothing outside it") {
    document d;
    d.head = {{"schema", std::string("mx.diff/1")}};
    const std::string page = page_of(d);
    CHECK(has(page, "<title>mx diff</title>"));
    CHECK(has(page, "content=\"default-src 'none'; script-src '" +
                        html::policy_hash(html::page_js().sha256) + "'; "));
    CHECK(has(page, "<script>" + std::string(html::page_js().text) + "</script>"));
    CHECK_FALSE(has(page, "http:"));
    CHECK_FALSE(has(page, "https:"));
    CHECK_FALSE(has(page, " src="));
    CHECK(page == page_of(d));
    d.title = "A <title>";
    CHECK(has(page_of(d), "<h1>A &lt;title&gt;</h1>"));
}

TEST_CASE("Sections become tables, paragraphs and lists") {
    section s;
    s.heading = "Head & foot";
    s.columns = {{"name", "the\nname", cell::name}, {"share", "%", cell::share}};
    s.rows = {
        {{"name", std::string("x<y")}, {"share", 0.5}, {"kind", std::string("k1")}},
        {{"name", std::string("z")}, {"share", std::monostate{}}, {"kind", std::string("k1")}},
        {{"name", std::string("w")}, {"share", 1.0}, {"kind", std::string("k2")}}};
    s.group_field = "kind";
    s.notes = {"before", item("one"), item("two"), "after"};
    const std::string page = page_of(with_section(s));
    CHECK(has(page, "<section id=\"head-foot\">"));
    CHECK(has(page, "<h2>Head &amp; foot "));
    CHECK(has(page,
              "<th scope=\"col\" class=\"name\">the<br>name</th><th scope=\"col\" "
              "class=\"n\">%</th>"));
    CHECK(has(page,
              "<tr><td class=\"name\">x&lt;y</td><td class=\"n\">50.00</td></tr>\n"
              "<tr><td class=\"name\">z</td><td class=\"n\">-</td></tr>\n"
              "<tr class=\"group\"><th colspan=\"2\" scope=\"colgroup\">k2</th></tr>"));
    CHECK(count_of(page, "class=\"group\"") == 2);
    CHECK(has(page, "<p>before</p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n<p>after</p>"));
}

TEST_CASE("Three headings get a table of contents") {
    document d;
    for (const char* heading : {"One", "Two", "Two"})
        d.sections.push_back({heading, {}, {}, {}, {}});
    CHECK(has(page_of(d), "<li><a href=\"#two-2\">Two</a></li>"));
    d.sections.pop_back();
    CHECK_FALSE(has(page_of(d), "<nav"));
}

TEST_CASE("Figures of one group are folded behind the first") {
    section s;
    for (const char* name : {"a", "b", "c"}) {
        figure f;
        f.id = name;
        f.title = std::string("<title ") + name + ">";
        f.group = std::string(name) == "c" ? "" : "group";
        f.metric = name;
        f.what = line_chart{{"x", "", false, false, {}, {}},
                            {"y", "", false, false, {}, {}},
                            {{"line", {{0, 1.0, "zero"}, {1, 2.0, "one"}}}},
                            {}};
        s.figures.push_back(f);
    }
    const std::string page = page_of(with_section(s));
    CHECK(count_of(page, "<figure") == 3);
    CHECK(has(page, "<strong>&lt;title a&gt;</strong>"));
    const std::size_t first = page.find("figure-a");
    const std::size_t fold = page.find("<summary>The same by b</summary>");
    const std::size_t second = page.find("figure-b");
    const std::size_t end = page.find("</details>");
    CHECK((first < fold && fold < second && second < end && end < page.find("figure-c")));
    CHECK(count_of(page, "href=\"data:text/csv;base64,") == 3);
    // The page offers all metrics to select.
    CHECK(has(page, "<option value=\"a\">a</option><option value=\"b\">b</option></select>"));
}

TEST_CASE("The table of all rows shows the worst and holds every value") {
    section s;
    s.all = small_explorer();
    const std::string page = page_of(with_section(s));
    CHECK(has(page, "4 tensors, the largest NRMSE in any column first."));
    // By the worst of both columns: 7, 4, 2, undefined.
    const auto place = [&](const char* row) {
        return page.find("<td class=\"name\">" + std::string(row));
    };
    CHECK(has(page, "<tr id=\"part-row-0\"><td class=\"name\">a"));
    CHECK((place("a") < place("d") && place("d") < place("b") && place("b") < place("c")));
    CHECK(has(page, "<td>weight</td><td class=\"n\">1.000</td><td class=\"n\">7.000</td>"));
    CHECK(has(page, "<option value=\"1\">norm (2)</option>"));
    CHECK(has(page, "\"class_of_row\":[0,1,0,1]"));
    CHECK(has(page, "\"values\":[\"AAAAAA==\",\"AACAPwAAAD8AAIA+AAAAAA==\"]"));
    CHECK(has(page, "\"words\":\"NRMSE: what it is\""));
    CHECK(has(page, "\"words\":\"rate in %\""));
    CHECK(has(page, "\"first\":[]"));

    s.all->first_classes = {"norm"};
    s.all->first_words = "gains";
    const std::string norms = page_of(with_section(s));
    CHECK(has(norms, "4 tensors, the largest NRMSE in any column first, gains before others."));
    CHECK(has(norms, "\"first\":[1]"));
    const auto now = [&](const char* row) {
        return norms.find("<td class=\"name\">" + std::string(row));
    };
    CHECK((now("d") < now("b") && now("b") < now("a") && now("a") < now("c")));
}

TEST_CASE("Ten thousand rows by nine columns and nine metrics stay below six megabytes") {
    explorer e;
    e.row_title = "tensor";
    e.rows.assign(10000, "model.layers.31.self_attn.q_proj.weight");
    e.classes.assign(10000, "weight");
    e.columns.assign(9, "mxfp4:scale=even");
    for (int k = 0; k < 9; ++k) {
        explorer::metric m;
        m.name = m.title = "metric";
        std::vector<float> values(10000);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = std::sqrt(static_cast<float>(i));
        m.values.assign(9, values);
        e.metrics.push_back(m);
    }
    section s;
    s.all = std::move(e);
    const std::string page = page_of(with_section(std::move(s)));
    CHECK(page.size() < 6000000);
    CHECK(count_of(page, "<tr") == 101);
}
