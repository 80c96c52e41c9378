// SPDX-License-Identifier: Apache-2.0
// Threads of base/parallel: this program is built with OpenMP and with std::thread.
#include "libmx/base/parallel.hpp"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "tests/catch.hpp"
#include "tests/floating_point_modes.hpp"

namespace {

using mx::base::parallel_for;

#ifdef MX_THREADS_STD
std::size_t threads_of_process() {
    DIR* const folder = opendir("/proc/self/task");
    REQUIRE(folder != nullptr);
    std::size_t count = 0;
    while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1u : 0u;
    closedir(folder);
    return count;
}
#endif

}  // namespace

TEST_CASE("a loop hands out every index once, to no more threads than asked for") {
    for (const int threads : {1, 2, 7}) {
        std::vector<std::atomic<int>> seen(1000);
        std::atomic<bool> known{true};
        parallel_for(seen.size(), threads, nullptr, [&](std::uint64_t i, int thread) {
            ++seen[i];
            if (thread < 0 || thread >= threads) known = false;
        });
        CHECK(known);
        for (const auto& count : seen) CHECK(count == 1);
    }
    CHECK(mx::base::thread_count(3) == 3);
    CHECK(mx::base::thread_count(0) >= 1);
}

TEST_CASE("a team has one call for each thread") {
    std::vector<std::atomic<int>> seen(5);
    mx::base::run_team(5, [&](int thread) { ++seen[static_cast<std::size_t>(thread)]; });
    for (const auto& count : seen) CHECK(count == 1);
}

TEST_CASE("every thread computes as IEEE 754 says, whoever made it and in whatever mode") {
    constexpr int threads = 4;
    for (const auto& mode : mx::tests::floating_point_modes) {
        CAPTURE(mode.name);
        std::atomic<int> wrong{0};
        mode.set();
        const std::uint64_t before = mx::tests::floating_point_state();
        // The threads of OpenMP stay: this loop may make them, with the caller's mode.
        for (int round = 0; round < 2; ++round) {
            mx::base::run_team(threads, [&](int) {
                const volatile float one = 1, third = 3, small = 0x1p-126f, half = 0.5f;
                const volatile float up = one / third, down = -one / third, low = small * half;
                if (up != 0x1.555556p-2f || down != -0x1.555556p-2f || low + low != small) ++wrong;
            });
        }
        const std::uint64_t after = mx::tests::floating_point_state();
        mx::tests::reset_floating_point();
        CHECK(wrong == 0);
        CHECK(after == before);
    }
}

TEST_CASE("the first exception comes through, and a raised flag stops a loop") {
    try {
        parallel_for(1000, 4, nullptr, [](std::uint64_t i, int) {
            if (i >= 10) throw std::runtime_error(std::to_string(i));
        });
        FAIL("nothing was thrown");
    } catch (const std::runtime_error& e) {
        CHECK(std::stoi(e.what()) >= 10);
    }
    std::atomic<bool> cancel{false};
    CHECK_THROWS_AS(parallel_for(1000, 4, &cancel,
                                 [&](std::uint64_t i, int) {
                                     if (i == 5) cancel = true;
                                 }),
                    mx::base::error);
}

TEST_CASE("an index that was taken ahead is the next of its thread, whatever else happens") {
    using mx::base::index_taker;
    for (const int threads : {1, 2, 7}) {
        std::vector<std::atomic<int>> seen(1000);
        std::vector<std::optional<std::uint64_t>> due(static_cast<std::size_t>(threads));
        std::atomic<bool> kept{true};
        mx::base::parallel_for_ahead(seen.size(), threads, nullptr,
                                     [&](std::uint64_t i, int thread, const index_taker& take) {
                                         ++seen[i];
                                         std::optional<std::uint64_t>& next =
                                             due[static_cast<std::size_t>(thread)];
                                         if (next && *next != i) kept = false;
                                         next = i % 3 == 0 ? take() : std::nullopt;
                                         if (next && (*next <= i || take())) kept = false;
                                     });
        CHECK(kept);
        for (const auto& count : seen) CHECK(count == 1);
        // The first index that fails was taken ahead by a thread that another one's failure would
        // have stopped.
        for (int round = 0; round < 50; ++round) {
            CHECK_THROWS_WITH(
                mx::base::parallel_for_ahead(1000, threads, nullptr,
                                             [&](std::uint64_t i, int, const index_taker& take) {
                                                 take();
                                                 if (i >= 10)
                                                     throw std::runtime_error(std::to_string(i));
                                             }),
                "10");
        }
    }
}

#ifdef MX_THREADS_STD
TEST_CASE("threads stay for the next call, teams in teams end, and a child made by fork works on") {
    const auto sum_of_teams = [] {
        std::atomic<int> sum{0};
        parallel_for(10, 4, nullptr, [&](std::uint64_t, int) {
            parallel_for(10, 4, nullptr, [&](std::uint64_t i, int) { sum += static_cast<int>(i); });
        });
        return sum.load();
    };
    for (int round = 0; round < 20; ++round) {
        CHECK(sum_of_teams() == 450);
        CHECK(threads_of_process() <= 7);  // 4 of this test; 7 of the first one
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) _exit(sum_of_teams() == 450 && threads_of_process() <= 4 ? 0 : 1);
        int status = -1;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
}

TEST_CASE("OMP_NUM_THREADS is the number of threads if none is named") {
    for (const auto& [text, count] : {std::pair("3", 3), std::pair("2,1", 2)}) {
        setenv("OMP_NUM_THREADS", text, 1);
        CHECK(mx::base::thread_count(0) == count);
        CHECK(mx::base::thread_count(5) == 5);
    }
    setenv("OMP_NUM_THREADS", "none", 1);
    CHECK(mx::base::thread_count(0) >= 1);
    unsetenv("OMP_NUM_THREADS");
}
#endif
