// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/archive.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

using namespace mx;
using base::archive;
using base::exact_sum;

namespace {

exact_sum sum_of(const std::vector<double>& values) {
    exact_sum s;
    for (const double v : values) s.add(v);
    return s;
}

}  // namespace

TEST_CASE("exact sums come back from their text") {
    const double largest = std::numeric_limits<double>::max();
    const double least = std::numeric_limits<double>::denorm_min();
    const std::vector<std::vector<double>> all{{},
                                               {1.0},
                                               {-1.0},
                                               {1.0, -1.0},
                                               {least},
                                               {-least},
                                               {largest},
                                               {-largest},
                                               {largest, least},
                                               {-largest, least},
                                               {1e300, 1e-300, -1e300},
                                               {0.1, 0.2, 0.3},
                                               {largest, largest, largest},
                                               {-0.75, 0x1p-1000, 0x1p900}};
    for (const auto& values : all) {
        const exact_sum s = sum_of(values);
        exact_sum back;
        INFO(s.text());
        REQUIRE(exact_sum::read(s.text(), back));
        CHECK(back == s);
        CHECK(back.text() == s.text());
    }
    CHECK(sum_of({1.0, -1.0}).text() == "0");
    CHECK(sum_of({std::ldexp(1.0, 32 * 5 - 1074)}).text() == "5:1");
    CHECK(sum_of({-std::ldexp(3.0, 32 * 5 - 1074), std::ldexp(1.0, 32 * 4 - 1074)}).text() ==
          "-4:2ffffffff");
}

TEST_CASE("texts that are no sums are refused") {
    exact_sum s;
    for (const char* text : {"", "1", ":", "0:", "44:1", "43:100000001", "x:1", "0:g", "0:1 ",
                             "--0:1", "0:+1", "0:-1", "ffffffffffffffffff:1"}) {
        INFO(text);
        CHECK_FALSE(exact_sum::read(text, s));
    }
    CHECK_FALSE(exact_sum::read("0:" + std::string(8 * 69, '1'), s));
}

TEST_CASE("figures that are handed over in several texts add up") {
    struct figures {
        std::uint64_t n = 0, last = 0;
        exact_sum s;
        std::uint32_t top = 0;
        double most = 0;
        std::vector<std::uint64_t> bins = std::vector<std::uint64_t>(300);
        void serialize(archive& with) {
            with.add(n);
            with.add(s);
            with.raise(top);
            with.raise(most);
            with.set(last);
            with.add(std::span(bins));
        }
    };
    figures a, b;
    a.n = 3;
    a.s.add(0.1);
    a.top = 7;
    a.most = 2.5;
    a.bins[299] = 1;
    b.n = ~std::uint64_t{0} - 5;
    b.s.add(-1e-30);
    b.top = 0xffffffffu;
    b.last = 9;
    b.bins[0] = 4;
    b.bins[299] = 2;
    figures sum;
    for (figures* f : {&a, &b}) {
        archive to;
        f->serialize(to);
        archive from(to.text());
        CHECK(from.reads());
        sum.serialize(from);
        CHECK_NOTHROW(from.end());
    }
    CHECK(sum.n == ~std::uint64_t{0} - 2);
    exact_sum both = a.s;
    both.merge(b.s);
    CHECK(sum.s == both);
    CHECK(sum.top == 0xffffffffu);
    CHECK(sum.most == 2.5);
    CHECK(sum.last == 9);
    CHECK(sum.bins[299] == 3);
    CHECK(sum.bins[0] == 4);
}

TEST_CASE("damaged texts are errors") {
    const auto read = [](const std::string& text) {
        archive from(text);
        std::uint64_t n = 0;
        std::uint32_t top = 0;
        double most = 0;
        std::vector<std::uint64_t> bins(4);
        exact_sum s;
        from.add(n);
        from.raise(top);
        from.raise(most);
        from.add(s);
        from.add(std::span(bins));
        from.end();
    };
    CHECK_NOTHROW(read("1 2 0 0 1 3 5 "));
    for (const char* text : {"", "1", "1 2 0 0 1 3 5", "1 2 0 0 1 4 5 ", "1 100000000 0 0 0 ",
                             "1 2 bff0000000000000 0 0 ", "1 2 7ff8000000000000 0 0 ", "1 2 0 z 0 ",
                             "1 2 0 0 ffffffffffffffff ", "1 2 0 0 0 0 ", "g 2 0 0 0 "}) {
        INFO(text);
        CHECK_THROWS_AS(read(text), base::error);
    }
}
