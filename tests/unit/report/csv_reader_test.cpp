// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/csv_reader.hpp"

#include <algorithm>
#include <string>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

using mx::report::csv_table;

namespace {

csv_table table_of(std::string text, std::size_t piece = 65536) {
    std::size_t at = 0;
    return mx::report::read_csv(
        [&](std::span<char> out) {
            const std::size_t count = std::min({out.size(), text.size() - at, piece});
            std::copy_n(text.data() + at, count, out.data());
            at += count;
            return count;
        },
        "t.csv");
}

std::string failure_of(const std::string& text) {
    try {
        table_of(text);
    } catch (const mx::base::error& e) {
        return e.message();
    }
    return "";
}

}  // namespace

TEST_CASE("a table is read as RFC 4180 has it") {
    const csv_table t = table_of("a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\r\n\r\n 2 ,b , c\n3,,\"\"");
    CHECK(t.names == std::vector<std::string>{"a", "b", "c"});
    REQUIRE(t.rows.size() == 3);
    CHECK(t.rows[0].fields == std::vector<std::string>{"1", "x, \"y\"\nz", ""});
    CHECK(t.rows[1].fields == std::vector<std::string>{"2", "b", "c"});
    CHECK(t.rows[2].fields == std::vector<std::string>{"3", "", ""});
    CHECK(t.rows[0].line == 2);
    CHECK(t.rows[1].line == 5);
    CHECK(t.rows[2].line == 6);
    CHECK(t.column("b") == 1);
    CHECK(!t.find("d"));
    CHECK_THROWS_AS(t.column("d"), mx::base::error);
}

TEST_CASE("a table is the same in pieces, and with a byte order mark") {
    const std::string text = "\xEF\xBB\xBFN,D\n1e3,\"2\"\n";
    for (const std::size_t piece : {1u, 2u, 3u, 100u}) {
        const csv_table t = table_of(text, piece);
        CHECK(t.names == std::vector<std::string>{"N", "D"});
        CHECK(t.rows.at(0).fields == std::vector<std::string>{"1e3", "2"});
    }
}

TEST_CASE("damaged tables are refused with their line") {
    CHECK(failure_of("") == "is empty: a table begins with its header");
    CHECK(failure_of("\n\n") == "is empty: a table begins with its header");
    CHECK(failure_of("a,b\n1\n") == "line 2: 1 fields, but the header has 2");
    CHECK(failure_of("a,b\n\n1,2,3\n") == "line 3: 3 fields, but the header has 2");
    CHECK(failure_of("a,a\n") == "line 1: two columns are named 'a'");
    CHECK(failure_of("a,\n") == "line 1: a column without a name");
    CHECK(failure_of("a\n\"x\n\n") == "line 2: a quoted field has no closing quote");
    CHECK(failure_of("a\n\"x\"y\n") == "line 2: a quoted field continues after its closing quote");
    CHECK(failure_of(std::string(2000, ',')) == "line 1: more than 1,024 fields");
}

TEST_CASE("any bytes are a table or an error") {
    const std::string sample = "N,D,loss\r\n1e6,2e7,\"3.5\"\n2e6,\"4\"\"e7\",nan\n";
    const mx::base::random_key key{7, 0};
    for (std::uint64_t i = 0; i < 3000; ++i) {
        std::string text = sample;
        for (std::uint64_t k = 0; k < 4; ++k) {
            const std::uint32_t word = mx::base::random_u32(key, 4 * i + k);
            const char c = word % 3 == 0 ? "\",\n\r"[word / 3 % 4] : static_cast<char>(word >> 8);
            text[word / 16 % text.size()] = c;
        }
        try {
            const csv_table t = table_of(text);
            for (const auto& row : t.rows) REQUIRE(row.fields.size() == t.names.size());
        } catch (const mx::base::error& e) {
            REQUIRE(e.kind() == mx::base::error_kind::input);
        }
    }
}

TEST_CASE("numbers of tables") {
    using mx::report::finite_number;
    CHECK(finite_number("1e18") == 1e18);
    CHECK(finite_number("-2.5") == -2.5);
    for (const char* text : {"", "nan", "inf", "1 ", "0x10", "1e999", "1,5"}) {
        CHECK(!finite_number(text));
    }
}
