// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/isolated.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

using mx::capture::outcome;
using mx::capture::run_isolated;
using mx::capture::run_series;

TEST_CASE("a part's answer, or why there is none, comes back from its process") {
    SECTION("an answer, however long") {
        const std::string text(1 << 20, 'x');
        const outcome o = run_isolated([&] { return text; }, 60);
        CHECK(o.fine);
        CHECK(o.text == text);
    }
    SECTION("what it threw") {
        const outcome o =
            run_isolated([]() -> std::string { throw std::runtime_error("refused"); }, 60);
        CHECK(!o.fine);
        CHECK(o.text == "refused");
    }
    SECTION("the signal that ended it") {
        const outcome o = run_isolated(
            [] {
                kill(getpid(), SIGKILL);
                return std::string();
            },
            60);
        CHECK(!o.fine);
        CHECK(o.text == "ended by signal 9");
    }
    SECTION("that it went on for too long") {
        const outcome o = run_isolated(
            [] {
                pause();
                return std::string();
            },
            1);
        CHECK(!o.fine);
        CHECK(o.text == "was not done in 1 seconds");
        CHECK(o.late);
    }
}

TEST_CASE("parts share a process until one fails") {
    const pid_t parent = getpid();
    std::vector<std::pair<std::size_t, outcome>> got;
    const auto ended = [&](std::size_t n, const outcome& o) {
        CHECK(getpid() == parent);
        got.emplace_back(n, o);
    };
    int calls = 0;  // of the child
    const auto count = [&](std::size_t n) {
        if (n == 3) throw std::runtime_error("refused");
        if (n == 5) kill(getpid(), SIGKILL);
        return std::to_string(++calls);
    };
    SECTION("all well: one process") {
        CHECK(run_series(3, count, 60, ended) == 3);
        REQUIRE(got.size() == 3);
        for (std::size_t n = 0; n < 3; ++n) {
            CHECK(got[n].first == n);
            CHECK(got[n].second.fine);
            CHECK(got[n].second.text == std::to_string(n + 1));
        }
        CHECK(calls == 0);
    }
    SECTION("an error ends it") {
        CHECK(run_series(9, count, 60, ended) == 4);
        REQUIRE(got.size() == 4);
        CHECK(got[2].second.fine);
        CHECK(!got[3].second.fine);
        CHECK(got[3].second.text == "refused");
    }
    SECTION("so does its death") {
        const auto from_four = [&](std::size_t n) { return count(n + 4); };
        CHECK(run_series(9, from_four, 60, ended) == 2);
        REQUIRE(got.size() == 2);
        CHECK(got[0].second.fine);
        CHECK(!got[1].second.fine);
        CHECK(!got[1].second.late);
        CHECK(got[1].second.text == "ended by signal 9");
    }
    SECTION("and what is never done; the others had their own time") {
        const auto third_waits = [&](std::size_t n) {
            if (n == 2) pause();
            usleep(4200000);  // twice that is more than the limit of one
            return std::string();
        };
        CHECK(run_series(9, third_waits, 8, ended) == 3);
        REQUIRE(got.size() == 3);
        CHECK(got[1].second.fine);
        CHECK(got[2].second.late);
    }
    SECTION("what the caller throws ends the child, too") {
        CHECK_THROWS_AS(run_series(
                            2, [](std::size_t) { return std::string(); }, 60,
                            [](std::size_t, const outcome&) { throw std::runtime_error("full"); }),
                        std::runtime_error);
    }
}
