// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/parallel.hpp"

#include <fmt/format.h>

#ifndef MX_THREADS_STD
#include <omp.h>
#endif

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/status.hpp"

namespace mx::base {
namespace {

// A thread has the floating-point environment of its creator, which for those of OpenMP may be
// another library.
void run_member(const std::function<void(int)>& body, int thread) {
    const floating_point_environment ours;
    body(thread);
}

// The system may grant fewer threads, and then OpenMP ends the program. Numbers of threads that
// were not granted before are therefore tried first.
void require_threads(int threads) {
    static std::atomic<int> had{1};
    if (threads <= had.load()) return;
    std::atomic<bool> release{false};
    std::vector<std::thread> tried;
    std::string refused;
    try {
        while (static_cast<int>(tried.size()) + 1 < threads) {
            tried.emplace_back([&] { release.wait(false); });
        }
    } catch (const std::system_error& e) {
        refused = e.code().message();
    }
    release.store(true);
    release.notify_all();
    const std::size_t started = tried.size() + 1;
    for (std::thread& t : tried) t.join();
    if (!refused.empty()) {
        throw error(error_kind::unavailable,
                    fmt::format("the system grants {} of {} threads ({}); ask for fewer "
                                "(--threads), or raise its limits (ulimit -u, ulimit -v)",
                                started, threads, refused));
    }
    had.store(threads);
}

}  // namespace

#ifdef MX_THREADS_STD

int thread_count(int requested) {
    return requested > 0 ? requested
                         : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_team(int threads, const std::function<void(int)>& body) {
    require_threads(threads);
    std::vector<std::jthread> others;  // joined on the way out
    for (int i = 1; i < threads; ++i) others.emplace_back(run_member, std::cref(body), i);
    run_member(body, 0);
}

#else

namespace {

// OpenMP gives its threads the stack that the user names. On one that is too small they crash.
void require_stack() {
    constexpr std::uint64_t least = 512 << 10;
    const char* const text = std::getenv("OMP_STACKSIZE");
    if (text == nullptr) return;
    char* unit = nullptr;
    const std::uint64_t number = std::strtoull(text, &unit, 10);
    while (*unit == ' ') ++unit;
    const int letter = std::tolower(static_cast<unsigned char>(*unit));
    const std::uint64_t bytes = letter == 'b' ? 1 : letter == 'k' || letter == 0 ? 1024 : least;
    if (unit == text || number >= least / bytes) return;
    throw error(error_kind::unavailable,
                fmt::format("OMP_STACKSIZE={}: threads of mx need 512k; unset it", text));
}

}  // namespace

int thread_count(int requested) { return requested > 0 ? requested : omp_get_max_threads(); }

void run_team(int threads, const std::function<void(int)>& body) {
    require_stack();
    require_threads(threads);
    // If a system grants fewer threads, each of them takes several turns.
#pragma omp parallel num_threads(threads)
    for (int i = omp_get_thread_num(); i < threads; i += omp_get_num_threads()) run_member(body, i);
}

#endif

void parallel_for(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                  const std::function<void(std::uint64_t, int)>& body) {
    parallel_for_ahead(
        count, threads, cancel,
        [&](std::uint64_t index, int thread, const index_taker&) { body(index, thread); });
}

void parallel_for_ahead(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                        const std::function<void(std::uint64_t, int, const index_taker&)>& body) {
    std::mutex guard;
    std::exception_ptr failure;
    std::uint64_t failed_at = std::numeric_limits<std::uint64_t>::max();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> next{0};
    const auto wanted = static_cast<std::uint64_t>(thread_count(threads));
    const int team = static_cast<int>(wanted < count ? wanted : count);

    const auto work = [&](int thread) {
        std::optional<std::uint64_t> ahead;
        const index_taker take = [&]() -> std::optional<std::uint64_t> {
            if (ahead || stop.load(std::memory_order_relaxed)) return std::nullopt;
            const std::uint64_t index = next.fetch_add(1, std::memory_order_relaxed);
            if (index < count) ahead = index;
            return ahead;
        };
        while (ahead || take()) {
            if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return;
            const std::uint64_t index = *std::exchange(ahead, std::nullopt);
            try {
                body(index, thread, take);
            } catch (...) {
                const std::lock_guard lock(guard);
                if (index < failed_at) {
                    failed_at = index;
                    failure = std::current_exception();
                }
                stop.store(true, std::memory_order_relaxed);
                return;
            }
        }
    };

    if (team <= 1) {
        work(0);
    } else {
        run_team(team, work);
    }
    if (failure) std::rethrow_exception(failure);
    stop_if(cancel);
}

void stop_if(const std::atomic<bool>* cancel) {
    if (cancel == nullptr || !cancel->load()) return;
    throw error(error_kind::cancelled, "stopped before the end");
}

}  // namespace mx::base
