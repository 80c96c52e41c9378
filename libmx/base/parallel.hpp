// SPDX-License-Identifier: Apache-2.0
// A parallel loop that lets exceptions and cancellation through.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace mx::base {

/// Number of threads `requested` stands for: itself, or as many as the machine offers when it is 0
/// (OMP_NUM_THREADS counts where OpenMP makes the threads).
int thread_count(int requested);

/// Calls body(0) to body(threads - 1), each on a thread of its own. All of mx gets its threads
/// here: from OpenMP, or with the build option MX_THREADS=std from std::thread, and then none
/// outlives the call. `body` must not throw.
void run_team(int threads, const std::function<void(int thread)>& body);

/// Calls body(index, thread) for every index in [0, count) on up to `threads` threads (0: as many
/// as the machine offers), handing indices out in increasing order. The first exception (the one
/// with the smallest index among those thrown) is rethrown once all threads have stopped. When
/// `cancel` is raised, throws base::error (cancelled). Results must not depend on the order of
/// calls.
void parallel_for(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                  const std::function<void(std::uint64_t index, int thread)>& body);

/// Throws base::error (cancelled) where `cancel`, which may be null, is raised.
void stop_if(const std::atomic<bool>* cancel);

}  // namespace mx::base
