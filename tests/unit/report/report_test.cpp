// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <ctime>
#include <limits>
#include <set>
#include <string>

#include "libmx/report/cells.hpp"
#include "libmx/report/colored_table.hpp"
#include "libmx/report/json_line.hpp"
#include "libmx/report/text.hpp"
#include "libmx/report/writers.hpp"
#include "tests/catch.hpp"

using namespace mx::report;

namespace {

std::string written(void (*write)(const document&, const layout&, const sink&), const document& d,
                    int width = 100) {
    std::string out;
    write(d, {width}, [&](std::string_view text) { out += text; });
    return out;
}

document with_record(const record& r) {
    document d;
    d.results.push_back(r);
    return d;
}

value integer(std::int64_t n) { return n; }

TEST_CASE("A coloured table is the plain one with headings, verdicts and risks marked") {
    document d;
    section table{"Rules", {{"rule", "rule"}, {"verdict", "verdict"}, {"n", "n", cell::integer}}};
    table.add("a<1", "holds", 3);
    table.add("safe", "broken", 12);
    section risks{"Largest risks"};
    risks.warns = true;
    risks.notes = {item("one"), "two"};
    d.sections = {table, risks};
    CHECK(written(write_colored_table, d) ==
          "\x1b[1mRules\x1b[0m\n\n"
          "rule  verdict   n\n----  -------  --\n"
          "a<1   \x1b[32mholds\x1b[0m     3\n"
          "safe  \x1b[31mbroken\x1b[0m   12\n\n"
          "\x1b[1mLargest risks\x1b[0m\n- \x1b[33mone\x1b[0m\ntwo\n");
}

TEST_CASE("A table that is too wide wraps its texts to narrow columns") {
    document d;
    section s{"", {{"a", "a"}, {"b", "b"}, {"c", "c"}}};
    s.add("one two three four five", "one two three four five", "one two three four five");
    d.sections = {s};
    const std::string table = written(write_table, d, 40);
    for (std::size_t at = 0; at < table.size();) {
        const std::size_t end = table.find('\n', at);
        CHECK(end - at <= 40);
        at = end + 1;
    }
}

TEST_CASE("JSON of a record takes time in proportion to its members") {
    record r;
    for (int i = 0; i < 100000; ++i) r.emplace_back(std::to_string(1000000 + i), integer(i));
    const std::clock_t before = std::clock();
    const std::string json = json_line(r);
    CHECK(std::clock() - before < 5 * CLOCKS_PER_SEC);
    CHECK(json.starts_with(R"({"1000000":0,"1000001":1,)"));
    CHECK(json.ends_with(R"("1099999":99999})"));
}

}  // namespace

TEST_CASE("JSON numbers read back exactly") {
    const double hard[] = {0.1,
                           1.0 / 3.0,
                           5e-324,
                           std::numeric_limits<double>::max(),
                           0x1.fffffffffffffp-1022,
                           5.877471754111438e-39,
                           -0.0,
                           123456789012345678.0};
    for (const double x : hard) {
        const std::string json = written(write_json, with_record({{"x", x}}));
        const auto at = json.find("\"x\":") + 4;
        const double back = std::strtod(json.c_str() + at, nullptr);
        CAPTURE(json);
        CHECK(back == x);
        CHECK(std::signbit(back) == std::signbit(x));
    }
    const std::int64_t big = std::numeric_limits<std::int64_t>::max();
    CHECK(written(write_json, with_record({{"n", integer(big)}})).find("9223372036854775807") !=
          std::string::npos);
}

TEST_CASE("JSON keeps the order of members and knows null") {
    document d = with_record({{"z", std::monostate{}},
                              {"a", true},
                              {"list", list{integer(1), std::string("x")}},
                              {"nested", record{{"k", 0.5}}}});
    d.head = {{"schema", std::string("mx.test/1")}};
    d.tail = {{"empty", list{}}};
    CHECK(written(write_json, d) ==
          "{\n\"schema\":\"mx.test/1\",\n\"results\":[\n"
          "{\"z\":null,\"a\":true,\"list\":[1,\"x\"],\"nested\":{\"k\":0.5}}\n],\n"
          "\"empty\":[]\n}\n");
}

TEST_CASE("Names that are not UTF-8 or drive a terminal are made harmless") {
    // Invalid, a C0 and a C1 control, DEL, and an override of the direction of text.
    const std::string bad = "a\xff\"\x1b[31m\n\xc2\x9b\x7f\xe2\x80\xae";
    const std::string json = written(write_json, with_record({{"name", bad}}));
    CHECK(json.find("\"a\xef\xbf\xbd\\\"\\u001b[31m\\n\\u009b\\u007f\\u202e\"") !=
          std::string::npos);
    CHECK(written(write_json, with_record({{"name", std::string("\xc3\xbc\xe2\x82\xac")}}))
              .find("\"\xc3\xbc\xe2\x82\xac\"") != std::string::npos);

    CHECK(written(write_json, with_record({{"name", std::string("\xf3\xa0\x81\x81\xe2\x80\x8b")}}))
              .find("\"\\udb40\\udc41\\u200b\"") != std::string::npos);

    document d = with_record({{"name", bad}});
    d.sections.push_back({{}, {{"name", "name", cell::name}}, {{{"name", bad}}}, {}, {}});
    // Also where a name is not a cell: in headings, notes and titles of columns.
    document around = with_record({{bad, std::string("x")}});
    around.sections.push_back({bad, {}, {}, {}, {bad, item(bad)}});
    for (const auto write : {write_table, write_markdown, write_csv}) {
        const std::string text = written(write, around);
        for (const char* harmful : {"\xff", "\x1b", "\xc2\x9b", "\x7f", "\xe2\x80\xae", "m\n"}) {
            CHECK(text.find(harmful) == std::string::npos);
        }
    }
    for (const auto write : {write_table, write_markdown, write_csv}) {
        const std::string text = written(write, d);
        for (const char* harmful : {"\xff", "\x1b", "\xc2\x9b", "\x7f", "\xe2\x80\xae", "m\n"}) {
            CHECK(text.find(harmful) == std::string::npos);
        }
        CHECK(text.find("\\x1b[31m\\x0a\\xc2\\x9b\\x7f\\xe2\\x80\\xae") != std::string::npos);
    }
}

TEST_CASE("CSV quotes what needs it and leaves nested members out") {
    document d = with_record({{"name", std::string("a,\"b\"c")},
                              {"shape", list{integer(2), integer(3)}},
                              {"histogram", list{integer(1)}},
                              {"nothing", std::monostate{}},
                              {"x", 0.1}});
    d.results.push_back({{"x", integer(7)}, {"late", false}});
    CHECK(written(write_csv, d) ==
          "name,shape,nothing,x,late\r\n\"a,\"\"b\"\"c\",2x3,,0.1,\r\n,,,7,false\r\n");
    CHECK(written(write_csv, with_record({{"only", std::monostate{}}})) == "only\r\n\r\n");
}

TEST_CASE("Markdown escapes cells and keeps names in full") {
    document d;
    const std::string name = "blocks|0`x*" + std::string(200, 'n');
    d.sections.push_back({"Head",
                          {{"name", "the\nname", cell::name}, {"share", "%", cell::share}},
                          {{{"name", name}, {"share", 0.5}}},
                          {},
                          {item("one"), item("two"), "after"}});
    CHECK(written(write_markdown, d, 40) ==
          "## Head\n\n| the name | % |\n|---|---:|\n| `` blocks\\|0`x*" + std::string(200, 'n') +
              " `` | 50.00 |\n\n- one\n- two\n\nafter\n");
}

TEST_CASE("A table fits its width by shortening names and wrapping text") {
    document d;
    d.sections.push_back({{},
                          {{"name", "tensor", cell::name}, {"n", "n", cell::integer}},
                          {{{"name", std::string("model.layers.17.self_attn.q_proj.weight")},
                            {"n", integer(1234567)}},
                           {{"name", std::string("b")}, {"n", integer(-5)}}},
                          {},
                          {}});
    CHECK(written(write_table, d, 40) ==
          "tensor                                 n\n"
          "-----------------------------  ---------\n"
          "model.laye..ttn.q_proj.weight  1,234,567\n"
          "b                                     -5\n");
}

TEST_CASE("Titles, then recipes are wrapped where a table is too wide") {
    document d;
    d.sections.push_back({{},
                          {{"recipe", "recipe"},
                           {"a", "with saturated\nblocks", cell::integer},
                           {"b", "in danger", cell::integer},
                           {"c", "closest", cell::name}},
                          {{{"recipe", std::string("mxfp8:scale=rceil")},
                            {"a", integer(12)},
                            {"b", integer(3)},
                            {"c", std::string("layers.0.attention.wq.weight")}}},
                          {},
                          {}});
    CHECK(written(write_table, d, 50) ==
          "                       with\n"
          "                  saturated     in\n"
          "recipe               blocks danger closest\n"
          "----------------- --------- ------ ---------------\n"
          "mxfp8:scale=rceil        12      3 layer..q.weight\n");
    CHECK(written(write_table, d, 40) ==
          "                     with\n"
          "                saturated     in\n"
          "recipe             blocks danger closest\n"
          "--------------- --------- ------ -------\n"
          "mxfp8:                 12      3 la..ght\n"
          "scale=rceil\n");
}

TEST_CASE("Groups print a line when they change") {
    document d;
    d.sections.push_back({"Title",
                          {{"x", "x", cell::fixed, 1}},
                          {{{"g", std::string("one")}, {"x", 1.0}},
                           {{"g", std::string("one")}, {"x", 2.0}},
                           {{"g", std::string("two")}, {"x", std::monostate{}}}},
                          "g",
                          {}});
    CHECK(written(write_table, d) == "Title\n\n  x\n---\none\n1.0\n2.0\n\ntwo\n  -\n");
}

TEST_CASE("Percentages round to 0 and 100 only when they are") {
    CHECK(percent_text(0) == "0");
    CHECK(percent_text(-0.0) == "0");
    CHECK(percent_text(-0.00001) == "0.00");
    CHECK(fixed_text(-0.0, 2) == "0.00");
    CHECK(fixed_text(-0.004, 2) == "0.00");
    CHECK(fixed_text(-0.006, 2) == "-0.01");
    CHECK(fixed_text(-10, 0) == "-10");
    CHECK(percent_text(1) == "100");
    CHECK(percent_text(1e-9) == "<0.01");
    CHECK(percent_text(0.99999) == ">99.99");
    CHECK(percent_text(0.12345) == "12.35");
    CHECK(percent_text(0.5) == "50.00");
}

TEST_CASE("Numbers have sensible digits") {
    CHECK(significant_text(0, 4) == "0");
    CHECK(significant_text(0.0123456, 4) == "0.01235");
    CHECK(significant_text(1234.4, 4) == "1234");
    CHECK(significant_text(-1234.4, 4) == "-1234");
    CHECK(significant_text(999.96, 4) == "1000");
    CHECK(significant_text(12.5, 4) == "12.50");
    CHECK(significant_text(1.5e8, 3) == "1.50e+08");
    CHECK(significant_text(1.5e-7, 3) == "1.50e-07");
    CHECK(grouped(0) == "0");
    CHECK(grouped(999) == "999");
    CHECK(grouped(-1000) == "-1,000");
    CHECK(grouped(1234567890) == "1,234,567,890");
}

TEST_CASE("Shortened names of one column stay distinct where any cut allows it") {
    const std::vector<std::string> layers{"layers.0.mlp.down_proj", "layers.1.mlp.down_proj",
                                          "layers.0.self_attn.k_proj", "layers.1.self_attn.k_proj"};
    CHECK(shortened(layers[0], 20) == shortened(layers[1], 20));
    CHECK(told_apart(layers, 20) ==
          std::vector<std::string>{"layers.0...down_proj", "layers.1...down_proj",
                                   "layers.0..ttn.k_proj", "layers.1..ttn.k_proj"});
    // The usual head where it tells them apart, and where nothing does.
    CHECK(told_apart({"a.weight", "b.weight"}, 6) == std::vector<std::string>{"a..ght", "b..ght"});
    const std::vector<std::string> equal(2, "aaaaaaaaaabbbbbbbbbb");
    CHECK(told_apart(equal, 6) == std::vector<std::string>(2, shortened(equal[0], 6)));
}

TEST_CASE("Names that differ in the middle alone keep what differs") {
    const std::vector<std::string> names{
        "model/norm/batchnorm/ReadVariableOp:0", "model/norm/batchnorm/mul/ReadVariableOp:0",
        "model/dense/Tensordot/ReadVariableOp:0", "model/dense/BiasAdd/ReadVariableOp:0"};
    for (const std::size_t width : {10, 12, 16, 24, 36}) {
        const std::vector<std::string> shown = told_apart(names, width);
        CHECK(std::set<std::string>(shown.begin(), shown.end()).size() == names.size());
        for (const std::string& s : shown) CHECK(columns_of(s) <= width);
    }
    CHECK(told_apart({"folder-of-many/model-00001-of-00018.safetensors",
                      "folder-of-many/model-00002-of-00018.safetensors",
                      "folder-of-many/model-00018-of-00018.safetensors"},
                     20) == std::vector<std::string>{"fol..01..safetensors", "fol..02..safetensors",
                                                     "fol..18..safetensors"});
    // One name ends where the other continues.
    CHECK(told_apart({"a.long.name.of.a.weight.scale.of.it", "a.long.name.of.a.weight.scale"}, 8) ==
          std::vector<std::string>{"a...f.it", "a...cale"});
    // No room for what differs.
    const std::vector<std::string> inner{"a1b1c1d1e1", "a1b1c1d2e1", "a1b2c1d1e1", "a2b1c1d1e1"};
    CHECK(told_apart(inner, 5) == std::vector<std::string>{"a1..1", "a1..1", "a1..1", "a2..1"});
}

TEST_CASE("Names are shortened in the middle, on whole characters") {
    CHECK(shortened("short", 16) == "short");
    CHECK(shortened("abcdefghijklmnopqrstuvwxyz", 12) == "abcd..uvwxyz");
    const std::string cut = shortened("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 5);
    CHECK(columns_of(cut) == 5);
    CHECK(cut == "\xc3\xa4..\xc3\xb6\xc3\xbc");
    CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
    CHECK(wrapped("", 7) == std::vector<std::string>{""});
    CHECK(breakable("mxfp8:scale=rceil,axis=flat", 27) == "mxfp8:scale=rceil,axis=flat");
    CHECK(breakable("mxfp8:scale=rceil,axis=flat", 26) == "mxfp8:scale=rceil, axis=flat");
    CHECK(breakable("by mxfp8:scale=rceil,axis=flat, or", 12) ==
          "by mxfp8: scale=rceil, axis=flat, or");
    CHECK(breakable("mxfp8:", 2) == "mxfp8:");
    CHECK(breakable("docs/reproduce/su.md", 15) == "docs/reproduce/ su.md");
    CHECK(breakable("nvfp4:outer=given:a/b", 8) == "nvfp4: outer=given: a/b");
}
