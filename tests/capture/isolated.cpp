// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/isolated.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/catch.hpp"

using mx::capture::outcome;
using mx::capture::run_isolated;

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
    }
}
