// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <random>
#include <span>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/writers.hpp"
#include "tests/catch.hpp"

using namespace mx::report;
namespace base = mx::base;

namespace {

std::string written(const document& d) {
    std::string out;
    write_json(d, {}, [&](std::string_view text) { out += text; });
    return out;
}

std::string written(results_file f) {
    document d;
    d.head = std::move(f.head);
    d.results = std::move(f.results);
    d.tail = std::move(f.tail);
    return written(d);
}

document sample() {
    document d;
    d.head = {{"schema", std::string("mx.analysis/1")},
              {"tool", record{{"name", std::string("mx")}, {"version", std::string("0.1.0")}}},
              {"inputs", list{record{{"path", std::string("a \"b\"\n\xc3\xa9\xe2\x80\xae")},
                                     {"bytes", std::int64_t{12}}}}}};
    for (int i = 0; i < 5; ++i) {
        d.results.push_back(record{{"tensor", "layers." + std::to_string(i / 2)},
                                   {"shape", list{std::int64_t{i}, std::int64_t{64}}},
                                   {"layer", i % 2 == 0 ? value() : value(std::int64_t{i})},
                                   {"elements", std::numeric_limits<std::int64_t>::max() - i},
                                   {"exact", i == 3},
                                   {"rmse", 0.1 * i},
                                   {"gain", i == 1 ? value(-0.0) : value(1e300)},
                                   {"histogram", record{{"from", 1.0}, {"counts", list{}}}}});
    }
    d.results.push_back(record{{"tensor", std::string("of another kind")}});
    d.tail = {{"summary", list{record{{"recipe", std::string("mxfp4")}}}}, {"phase", value()}};
    return d;
}

std::string failure(const std::string& text) {
    try {
        read_results(text, "r.json");
    } catch (const base::error& e) {
        CHECK(e.kind() == base::error_kind::input);
        CHECK(e.place().file == "r.json");
        return e.what();
    }
    return "no error";
}

std::string around(const std::string& results) {
    return R"({"schema":"mx.analysis/1","results":)" + results + "}";
}

}  // namespace

TEST_CASE("results read back as they were written") {
    const std::string text = written(sample());
    results_file f = read_results(text, "r.json");
    CHECK(f.kind == "analysis");
    CHECK(f.results.size() == 6);
    CHECK(f.results[0] == sample().results[0]);
    CHECK(f.head == sample().head);
    CHECK(f.tail == sample().tail);
    CHECK(written(std::move(f)) == text);
}

TEST_CASE("results may come in pieces of any size") {
    const std::string text = written(sample());
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
        std::size_t at = 0;
        const byte_source source = [&](std::span<char> out) {
            const std::size_t count = std::min({piece, out.size(), text.size() - at});
            text.copy(out.data(), count, at);
            at += count;
            return count;
        };
        CHECK(written(read_results(source, "r.json")) == text);
    }
}

TEST_CASE("a program may have written the members in another order and with blanks") {
    const results_file f = read_results(
        " {\"a\" : 1,\r\n\t\"results\" : [ { \"tensor\" : \"w\" } ] , \"schema\":\"mx.diff/1\"}\n",
        "r.json");
    CHECK(f.kind == "diff");
    CHECK(f.head == record{{"a", std::int64_t{1}}});
    CHECK(f.results[0] == record{{"tensor", std::string("w")}});
}

TEST_CASE("members of results that nobody asked for are left out") {
    read_options options;
    options.keep = [](std::string_view name) { return name == "tensor" || name == "shape"; };
    const results_file f = read_results(written(sample()), "r.json", options);
    CHECK(f.results[1] == record{{"tensor", std::string("layers.0")},
                                 {"shape", list{std::int64_t{1}, std::int64_t{64}}}});
    CHECK(f.tail == sample().tail);
    CHECK(f.head == sample().head);
}

TEST_CASE("whole numbers stay whole") {
    const results_file f = read_results(
        around("[{\"a\":-9223372036854775808,\"b\":9223372036854775808,\"c\":1e2,\"d\":-0}]"),
        "r.json");
    const record r = f.results[0];
    CHECK(*find(r, "a") == value(std::numeric_limits<std::int64_t>::min()));
    CHECK(*find(r, "b") == value(9223372036854775808.0));
    CHECK(*find(r, "c") == value(100.0));
    CHECK(*find(r, "d") == value(std::int64_t{0}));
}

TEST_CASE("what is not JSON is refused with the byte") {
    CHECK(failure("") ==
          "r.json: is not JSON: give results that mx wrote with --json, as in mx analyze MODEL "
          "--json results.json");
    CHECK(failure(around("[{\"a\":1,}]")).find("at byte 45: is not valid JSON") !=
          std::string::npos);
    CHECK(failure(around("[]") + "x").find("is not valid JSON") != std::string::npos);
    CHECK(failure(around("[{\"a\":1e999}]")).find("number overflow") != std::string::npos);
    CHECK(failure(around("[{\"a\":\"\xff\"}]")).find("is not valid JSON") != std::string::npos);
    const std::string text = written(sample());
    for (std::size_t length = 3; length + 1 < text.size(); length += 3) {
        CHECK(failure(text.substr(0, length)).find("r.json: at byte ") == 0);
    }
}

TEST_CASE("what mx does not write is refused") {
    CHECK(failure("[]") == "r.json: at byte 1: is a list, not results of mx");
    CHECK(failure("7").find("is one value, not results of mx") != std::string::npos);
    CHECK(failure("{}").find("has no \"schema\"") != std::string::npos);
    CHECK(failure(R"({"schema":7,"results":[]})").find("has no \"schema\"") != std::string::npos);
    CHECK(failure(R"({"schema":"npm/1","results":[]})").find("is none of mx") != std::string::npos);
    CHECK(failure(R"({"schema":"mx.x/","results":[]})").find("is none of mx") != std::string::npos);
    CHECK(failure(R"({"schema":"mx.x/1b","results":[]})").find("none of mx") != std::string::npos);
    CHECK(failure(R"({"schema":"mx.x/0","results":[]})").find("none of mx") != std::string::npos);
    CHECK(failure(R"({"schema":"mx.analysis/2","results":[]})") ==
          "r.json: the schema 'mx.analysis/2' is newer than this mx, which reads up to /1: use the "
          "mx that wrote it");
    CHECK(failure(R"({"schema":"mx.analysis/1"})").find("has no \"results\"") != std::string::npos);
    CHECK(failure(around("{}")).find("\"results\" is not a list") != std::string::npos);
    CHECK(failure(around("3")).find("\"results\" is not a list") != std::string::npos);
    CHECK(failure(around("[[]]")).find("is not an object") != std::string::npos);
    CHECK(failure(around("[{},3]")).find("is not an object") != std::string::npos);
}

TEST_CASE("hostile results are refused") {
    CHECK(failure(around(R"([{"a":1,"a":2}])")).find("the member 'a' is duplicated") !=
          std::string::npos);
    CHECK(failure(R"({"schema":"mx.a/1","results":[],"results":[]})").find("duplicated") !=
          std::string::npos);
    CHECK(failure(around("[{\"a\":" + std::string(14, '['))).find("is nested more than 16 deep") !=
          std::string::npos);
    CHECK(failure(std::string(1000000, '[')).find("is a list") != std::string::npos);
    CHECK(failure("{\"a\":" + std::string(100000, '[')).find("nested more") != std::string::npos);
    CHECK(failure(around("[{\"" + std::string((1 << 20) + 1, 'x') + "\":1}]"))
              .find("longer than 1 MiB") != std::string::npos);
}

TEST_CASE("results with a few bytes changed are read or refused, nothing else") {
    const std::string text = written(sample());
    std::mt19937 draw(1);
    int refused = 0;
    for (int i = 0; i < 3000; ++i) {
        std::string changed = text;
        const std::string alphabet = "{}[],:\"0-.eE\\utrnx9 ";
        for (unsigned k = 0; k < 1 + draw() % 4; ++k) {
            const std::size_t at = draw() % changed.size();
            switch (draw() % 3) {
                case 0:
                    changed[at] = alphabet[draw() % alphabet.size()];
                    break;
                case 1:
                    changed.erase(at, 1 + draw() % 40);
                    break;
                default:
                    changed.insert(at, changed.substr(draw() % changed.size(), draw() % 40));
            }
        }
        try {
            // Results that were read can be written and read again.
            const std::string again = written(read_results(changed, "r.json"));
            CHECK(written(read_results(again, "r.json")) == again);
        } catch (const base::error& e) {
            CHECK(e.kind() == base::error_kind::input);
            ++refused;
        }
    }
    CHECK(refused > 500);
    CHECK(refused < 3000);
}
