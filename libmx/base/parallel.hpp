// SPDX-License-Identifier: Apache-2.0
// A parallel loop that lets exceptions and cancellation through.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace mx::base {

/// Number of threads `requested` stands for: itself, or what OpenMP offers when it is 0.
int thread_count(int requested);

/// Calls body(index, thread) for every index in [0, count) on up to `threads` threads (0: as many
/// as OpenMP offers), handing indices out in increasing order. The first exception (the one with
/// the smallest index among those thrown) is rethrown once all threads have stopped. When `cancel`
/// is raised, throws base::error (cancelled). Results must not depend on the order of calls.
void parallel_for(std::uint64_t count, int threads, const std::atomic<bool>* cancel,
                  const std::function<void(std::uint64_t index, int thread)>& body);

}  // namespace mx::base
