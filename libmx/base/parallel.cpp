// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/parallel.hpp"

#include <fmt/format.h>

#include <pthread.h>
#ifndef MX_THREADS_STD
#include <omp.h>
#endif

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
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

[[noreturn]] void refuse_threads(std::size_t started, int requested, const std::string& why) {
    throw error(
        error_kind::unavailable,
        fmt::format("the system grants {} of {} threads ({}); ask for fewer (--threads), or "
                    "raise its limits (ulimit -u, ulimit -v)",
                    started, requested, why));
}

struct team {
    const std::function<void(int)>& body;
    int next, end;  // members that no thread has begun
    int running = 0;
};

// Threads that stay for later teams. Nothing waits for them when the program ends.
class waiting_threads {
  public:
    void run(int threads, const std::function<void(int)>& body) {
        team t{body, 1, threads};
        {
            const std::lock_guard lock(guard_);
            grow_to(threads - 1);
            teams_.push_back(&t);
        }
        begun_.notify_all();
        run_member(body, 0);
        std::unique_lock lock(guard_);
        while (t.next < t.end) run_next(t, lock);  // teams in teams do not wait for one another
        ended_.wait(lock, [&] { return t.running == 0; });
    }

  private:
    void grow_to(int threads) {
        try {
            for (; threads_ < threads; ++threads_) std::thread([this] { serve(); }).detach();
        } catch (const std::system_error& e) {
            refuse_threads(static_cast<std::size_t>(threads_) + 1, threads + 1, e.code().message());
        }
    }
    void serve() {
        std::unique_lock lock(guard_);
        for (;;) {
            begun_.wait(lock, [&] { return !teams_.empty(); });
            run_next(*teams_.front(), lock);
        }
    }
    void run_next(team& t, std::unique_lock<std::mutex>& lock) {
        const int member = t.next++;
        if (t.next == t.end) std::erase(teams_, &t);
        ++t.running;
        lock.unlock();
        run_member(t.body, member);
        lock.lock();
        if (--t.running == 0) ended_.notify_all();
    }

    std::mutex guard_;
    std::condition_variable begun_, ended_;
    std::vector<team*> teams_;
    int threads_ = 0;
};

std::atomic<waiting_threads*> pool{nullptr};

// A child made by fork has none of the threads, and perhaps a locked mutex: it makes others.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr); });

void run_waiting_team(int threads, const std::function<void(int)>& body) {
    waiting_threads* known = pool.load();
    if (known == nullptr) {
        auto made = std::make_unique<waiting_threads>();
        if (pool.compare_exchange_strong(known, made.get())) known = made.release();
    }
    known->run(threads, body);
}

}  // namespace

#ifdef MX_THREADS_STD

int thread_count(int requested) {
    if (requested > 0) return requested;
    const char* const text = std::getenv("OMP_NUM_THREADS");
    const long named = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    if (named > 0 && named <= std::numeric_limits<int>::max()) return static_cast<int>(named);
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_team(int threads, const std::function<void(int)>& body) {
    if (threads <= 1) return run_member(body, 0);
    run_waiting_team(threads, body);
}

#else

namespace {

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
    if (!refused.empty()) refuse_threads(started, threads, refused);
    had.store(threads);
}

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

namespace {

using run_threads = void (*)(int, const std::function<void(int)>&);

void loop(std::uint64_t count, int threads, const std::atomic<bool>* cancel, run_threads run,
          const std::function<void(std::uint64_t, int, const index_taker&)>& body) {
    std::mutex guard;
    std::exception_ptr failure;
    std::uint64_t failed_at = std::numeric_limits<std::uint64_t>::max();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> next{0};
    const auto requested = static_cast<std::uint64_t>(thread_count(threads));
    const int team = static_cast<int>(requested < count ? requested : count);

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
        run(team, work);
    }
    if (failure) std::rethrow_exception(failure);
    stop_if(cancel);
}

}  // namespace

void parallel_for(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                  const std::function<void(std::uint64_t, int)>& body) {
    loop(count, threads, cancel, run_team,
         [&](std::uint64_t index, int thread, const index_taker&) { body(index, thread); });
}

void parallel_for_waiting(std::uint64_t count, int threads,
                          const std::function<void(std::uint64_t, int)>& body) {
    loop(count, threads, nullptr, run_waiting_team,
         [&](std::uint64_t index, int thread, const index_taker&) { body(index, thread); });
}

void parallel_for_ahead(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                        const std::function<void(std::uint64_t, int, const index_taker&)>& body) {
    loop(count, threads, cancel, run_team, body);
}

void stop_if(const std::atomic<bool>* cancel) {
    if (cancel == nullptr || !cancel->load()) return;
    throw error(error_kind::cancelled, "stopped before the end");
}

}  // namespace mx::base
