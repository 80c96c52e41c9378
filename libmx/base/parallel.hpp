// SPDX-License-Identifier: Apache-2.0
// A parallel loop that passes on exceptions and cancellation.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

namespace mx::base {

/// Number of threads that `requested` means: itself, or if it is 0 OMP_NUM_THREADS, or as many as
/// the machine offers.
int thread_count(int requested);

/// Calls body(0) to body(threads - 1), each on its own thread unless others are late. The threads
/// of loops are those of OpenMP, or with the build option MX_THREADS=std those of std::thread;
/// either stay for later teams, and with std::thread a child made by fork makes its own. Each has a
/// floating_point_environment. `body` must not throw.
void run_team(int threads, const std::function<void(int thread)>& body);

/// Calls body(index, thread) for every index in [0, count) on up to `threads` threads (0: as many
/// as the machine offers), handing indices out in increasing order. The first exception (the one
/// with the smallest index among those thrown) is rethrown once all threads have stopped. When
/// `cancel` is raised, throws base::error (cancelled). Results must not depend on the order of
/// calls.
void parallel_for(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                  const std::function<void(std::uint64_t index, int thread)>& body);

/// The same for short loops one after the other, on threads of std::thread in every build: threads
/// that wait use no processor time, while those of OpenMP may spin until the next loop.
void parallel_for_waiting(std::uint64_t count, int threads,
                          const std::function<void(std::uint64_t index, int thread)>& body);

/// Takes the index of the calling thread's next call ahead, once per call; nothing if there is none
/// left. The call follows even if another thread's throws, so that the first exception is the same.
using index_taker = std::function<std::optional<std::uint64_t>()>;

/// The same; `body` may take an index ahead, to prepare for its next call.
void parallel_for_ahead(
    std::uint64_t count, int threads, const std::atomic<bool>* cancel,
    const std::function<void(std::uint64_t index, int thread, const index_taker& take)>& body);

/// Throws base::error (cancelled) if `cancel`, which may be null, is raised.
void stop_if(const std::atomic<bool>* cancel);

}  // namespace mx::base
