// SPDX-License-Identifier: Apache-2.0
// Numbers along axes: limits, ticks, places and how they are written.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "libmx/report/svg/canvas.hpp"
#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/numbers.hpp"
#include "libmx/report/svg/scale.hpp"
#include "tests/catch.hpp"
#include "tests/unit/report/shared.hpp"

using namespace mx::report;
using namespace mx::report::svg;

namespace {

scale made(const axis& a, const std::vector<double>& values, int requested = 5,
           margin m = margin::round) {
    extent e;
    for (const double x : values) e.add(x);
    return scale_of(a, e, requested, m);
}

std::vector<std::string> texts(const scale& s) {
    std::vector<std::string> out;
    for (const tick& t : s.ticks) out.push_back(t.text);
    return out;
}

axis linear_axis() { return {}; }
axis log_axis() {
    axis a;
    a.log = true;
    return a;
}
axis share_axis() {
    axis a;
    a.share = true;
    return a;
}

using words = std::vector<std::string>;

}  // namespace

TEST_CASE("linear ticks are 1, 2 or 5 times a power of ten apart") {
    CHECK(texts(made(linear_axis(), {0.3, 9.7})) == words{"0", "2", "4", "6", "8", "10"});
    CHECK(texts(made(linear_axis(), {0.012, 0.047})) ==
          words{"0.01", "0.02", "0.03", "0.04", "0.05"});
    CHECK(texts(made(linear_axis(), {-3.5, 4.5})) == words{"\xe2\x88\x92"
                                                           "4",
                                                           "\xe2\x88\x92"
                                                           "2",
                                                           "0", "2", "4", "6"});
    CHECK(texts(made(linear_axis(), {0, 4321})) ==
          words{"0", "1,000", "2,000", "3,000", "4,000", "5,000"});
    const scale s = made(linear_axis(), {0.012, 0.047});
    CHECK(s.low == Approx(0.01));
    CHECK(s.high == Approx(0.05));
    CHECK(s.ticks[2].value == Approx(0.03));
}

TEST_CASE("whole numbers have no ticks between them") {
    CHECK(texts(made(linear_axis(), {0, 1, 2}, 8, margin::none)) == words{"0", "1", "2"});
    CHECK(texts(made(linear_axis(), {-8.5, -7.5}, 5, margin::none)) == words{"\xe2\x88\x92"
                                                                             "8"});
    CHECK(texts(made(linear_axis(), {0, 1.5}, 3, margin::none)) ==
          words{"0.0", "0.5", "1.0", "1.5"});
}

TEST_CASE("limits that are set stay") {
    axis a;
    a.low = 3;
    a.high = 8.5;
    const scale s = made(a, {-100, 100});
    CHECK(s.low == 3);
    CHECK(s.high == 8.5);
    CHECK(texts(s) == words{"4", "6", "8"});
    CHECK(s.beyond(2.9) == -1);
    CHECK(s.beyond(3) == 0);
    CHECK(s.beyond(9) == 1);
    CHECK(s(100) == 1);
    CHECK(s(-100) == 0);
    a.high = inf;
    CHECK(std::isfinite(made(a, {4, 6}).high));
}

TEST_CASE("shares are in percent and stay within 0 and 1") {
    CHECK(texts(made(share_axis(), {0.05, 0.97})) ==
          words{"0%", "20%", "40%", "60%", "80%", "100%"});
    CHECK(texts(made(share_axis(), {0.0001, 0.0009})) ==
          words{"0.00%", "0.02%", "0.04%", "0.06%", "0.08%", "0.10%"});
    CHECK(made(share_axis(), {0.99, 1.0}).high == 1);
    CHECK(made(share_axis(), {1.0}).high == 1);
    axis a = share_axis();
    a.log = true;
    CHECK(texts(made(a, {0.00012, 0.3}, 6)) == words{"0.01%", "0.1%", "1%", "10%"});
}

TEST_CASE("logarithmic ticks are decades, then 1-2-5, then steps") {
    CHECK(texts(made(log_axis(), {0.0013, 40})) == words{"0.001", "0.01", "0.1", "1", "10"});
    CHECK(texts(made(log_axis(), {3, 45})) == words{"2", "5", "10", "20", "50"});
    CHECK(texts(made(log_axis(), {2.1, 4.9}, 4)) == words{"2", "3", "4", "5"});
    CHECK(texts(made(log_axis(), {1e-9, 1e-6}, 6)) ==
          words{"10\xe2\x81\xbb\xe2\x81\xb9", "10\xe2\x81\xbb\xe2\x81\xb8",
                "10\xe2\x81\xbb\xe2\x81\xb7", "10\xe2\x81\xbb\xe2\x81\xb6"});
    CHECK(made(log_axis(), {1e-250, 1e250}, 6).ticks.size() <= 12);
    CHECK(texts(made(log_axis(), {16, 32, 64, 128})) == words{"16", "32", "64", "128"});
}

TEST_CASE("a logarithmic axis maps equal ratios to equal lengths") {
    const scale s = made(log_axis(), {0.01, 100});
    CHECK(s.log);
    CHECK(s(0.01) == 0);
    CHECK(s(1) == Approx(0.5));
    CHECK(s(10) - s(1) == Approx(0.25));
    CHECK(s(0) == 0);
    CHECK(s(-5) == 0);
    CHECK(s.beyond(0) == -1);
}

TEST_CASE("values without a span still have an axis") {
    for (const bool log : {false, true}) {
        axis a;
        a.log = log;
        for (const std::vector<double>& values : {std::vector<double>{},
                                                  {0.0},
                                                  {0.0, 0.0},
                                                  {5.0, 5.0},
                                                  {-2.0},
                                                  {1e300},
                                                  {1e-310},
                                                  {-1e308, 1e308},
                                                  {inf, -inf},
                                                  {1.0, 1.0 + 1e-15}}) {
            for (const margin m : {margin::round, margin::round_from_zero, margin::none}) {
                const scale s = made(a, values, 6, m);
                CAPTURE(log, values.size(), values.empty() ? 0 : values[0], static_cast<int>(m));
                CHECK(std::isfinite(s.low));
                CHECK(std::isfinite(s.high));
                CHECK(s.low < s.high);
                CHECK(s.ticks.size() < 20);
                for (const double x : values) CHECK((s(x) >= 0 && s(x) <= 1));
                for (std::size_t i = 1; i < s.ticks.size(); ++i) {
                    CHECK(s.ticks[i - 1].value < s.ticks[i].value);
                }
            }
        }
    }
    CHECK_FALSE(made(log_axis(), {0, -1}).log);
}

TEST_CASE("numbers are typeset") {
    CHECK(number_text(0, 3) == "0");
    CHECK(number_text(1234567, 3) ==
          "1.23\xc3\x97"
          "10\xe2\x81\xb6");
    CHECK(number_text(123456, 3) == "123,456");
    CHECK(number_text(-0.05, 3) ==
          "\xe2\x88\x92"
          "0.05");
    CHECK(number_text(0.04601, 3) == "0.0460");
    CHECK(number_text(8.25, 4) == "8.25");
    CHECK(number_text(99.96, 3) == "100");
    CHECK(number_text(1e-7, 4) == "10\xe2\x81\xbb\xe2\x81\xb7");
    CHECK(number_text(-2.5e-7, 4) ==
          "\xe2\x88\x92"
          "2.5\xc3\x97"
          "10\xe2\x81\xbb\xe2\x81\xb7");
    CHECK(svg::fixed_text(-0.001, 2) == "0.00");
    axis a;
    a.title = "SQNR";
    a.unit = "dB";
    CHECK(value_text(a, 12.34567) == "12.35 dB");
    CHECK(title_text(a) == "SQNR (dB)");
    CHECK(value_text(share_axis(), 0.0312) == "3.12%");
    CHECK(coordinate(1.005) == "1");
    CHECK(coordinate(-0.001) == "0");
    CHECK(coordinate(12.50) == "12.5");
    CHECK(coordinate(inf) == "0");
}

TEST_CASE("names are measured, cut and broken") {
    CHECK(width_of("mmmm") > width_of("iiii"));
    CHECK(width_of("\xe2\x88\x92"
                   "1") < width_of("1234"));
    const std::string name = "model.layers.12.mlp.down_proj.weight";
    const std::string cut = fitted(name, 100);
    CHECK(width_of(cut) <= 100);
    CHECK(cut.find("..") != std::string::npos);
    CHECK(fitted(name, 1000) == name);
    CHECK(width_of(fitted(std::string(1000000, 'x'), 100)) <= 100);
    CHECK(broken("mxfp8_e4m3:floor", 60) == words{"mxfp8_", "e4m3:", "floor"});
    CHECK(broken("", 60) == words{""});
}

TEST_CASE("names of points do not touch") {
    const std::vector<std::pair<double, double>> points{
        {100, 100}, {104, 101}, {110, 98}, {300, 50}};
    name_places places({0, 0, 400, 200}, points, 4);
    std::vector<area> taken;
    for (const auto& [x, y] : points) {
        const auto a = places.place(x, y, 60, 12);
        REQUIRE(a);
        for (const area& other : taken) CHECK_FALSE(a->touches(other));
        CHECK((a->left >= 0 && a->right <= 400 && a->top >= 0 && a->bottom <= 200));
        taken.push_back(*a);
    }
    name_places narrow({90, 90, 110, 110}, points, 4);
    CHECK_FALSE(narrow.place(100, 100, 60, 12));
}
