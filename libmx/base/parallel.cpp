// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/parallel.hpp"

#include <omp.h>

#include <exception>
#include <limits>
#include <mutex>

#include "libmx/base/status.hpp"

namespace mx::base {

int thread_count(int requested) { return requested > 0 ? requested : omp_get_max_threads(); }

void parallel_for(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                  const std::function<void(std::uint64_t, int)>& body) {
    std::mutex guard;
    std::exception_ptr failure;
    std::uint64_t failed_at = std::numeric_limits<std::uint64_t>::max();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> next{0};
    const auto wanted = static_cast<std::uint64_t>(thread_count(threads));
    const int team = static_cast<int>(wanted < count ? wanted : count);

    const auto work = [&](int thread) {
        while (!stop.load(std::memory_order_relaxed)) {
            if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return;
            const std::uint64_t index = next.fetch_add(1, std::memory_order_relaxed);
            if (index >= count) return;
            try {
                body(index, thread);
            } catch (...) {
                const std::lock_guard lock(guard);
                if (index < failed_at) {
                    failed_at = index;
                    failure = std::current_exception();
                }
                stop.store(true, std::memory_order_relaxed);
            }
        }
    };

    if (team <= 1) {
        work(0);
    } else {
#pragma omp parallel num_threads(team)
        work(omp_get_thread_num());
    }
    if (failure) std::rethrow_exception(failure);
    if (cancel != nullptr && cancel->load()) {
        throw error(error_kind::cancelled, "stopped before the end");
    }
}

}  // namespace mx::base
