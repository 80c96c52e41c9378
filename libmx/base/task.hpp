// SPDX-License-Identifier: Apache-2.0
// Work outside a run, such as reading results or making a page, whose progress a program can show.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

namespace mx::base {

struct task_state {
    std::string_view what;    ///< "reading"
    std::uint64_t done = 0;   ///< steps
    std::uint64_t total = 0;  ///< 0: unknown
    bool begins = false;      ///< the first call of a task
    bool ended = false;       ///< the last call of a task, also after an error
};

/// Called when a task begins, after each step, and when it ends. What it throws after a step ends
/// the work; it must not throw at the end.
using task_watcher = std::function<void(const task_state&)>;

/// Sets the watcher for tasks of the calling thread; other threads have none. Empty: none.
void watch_tasks(task_watcher watcher);

/// A task from construction to destruction. Tasks inside a task are not reported.
class task {
  public:
    /// `what` is shown and must outlive the task. `total`: number of steps; 0: unknown.
    task(std::string_view what, std::uint64_t total);
    ~task();
    task(const task&) = delete;
    task& operator=(const task&) = delete;

    /// Counts `steps` as done, from any thread; on that of the task, throws what the watcher
    /// throws.
    void step(std::uint64_t steps = 1);

  private:
    std::string_view what_;
    std::uint64_t total_;
    bool reported_;
    std::atomic<std::uint64_t> done_{0};
    std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace mx::base
