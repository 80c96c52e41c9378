// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "libmx/report/record_list.hpp"
#include "tests/catch.hpp"

using namespace mx::report;

namespace {

record sample(int i) {
    record r;
    r.emplace_back("name", "tensor " + std::to_string(i / 3));
    r.emplace_back("shape", list{std::int64_t{i / 3}, std::int64_t{7}});
    r.emplace_back("count", std::int64_t{-1} - i);
    r.emplace_back("real", i % 5 == 0 ? value(-0.0) : value(std::ldexp(1.1, i)));
    r.emplace_back("flag", i % 2 == 0);
    r.emplace_back("nothing", value());
    if (i % 4 == 0) r.emplace_back("more", record{{"inner", std::int64_t{i}}});
    return r;
}

}  // namespace

TEST_CASE("a record list gives back what was put in") {
    std::vector<record> plain;
    record_list packed;
    CHECK(packed.empty());
    for (int i = 0; i < 100; ++i) {
        plain.push_back(sample(i));
        packed.push_back(plain.back());
    }
    REQUIRE(packed.size() == plain.size());
    std::size_t at = 0;
    for (const record& r : packed) CHECK(r == plain[at++]);
    CHECK(packed.front() == plain.front());
    const record first = packed[0];
    CHECK(std::signbit(std::get<double>(*find(first, "real"))));

    CHECK_THROWS(packed[100]);

    const record_list moved = std::move(packed);
    CHECK(moved[99] == plain[99]);
}
