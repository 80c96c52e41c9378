// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/task.hpp"

#include <utility>

namespace mx::base {
namespace {

thread_local task_watcher watcher;
thread_local bool under_way = false;

}  // namespace

void watch_tasks(task_watcher w) { watcher = std::move(w); }

task::task(std::string_view what, std::uint64_t total)
    : what_(what), total_(total), reported_(watcher && !under_way) {
    if (!reported_) return;
    watcher({what_, 0, total_, true, false});
    under_way = true;
}

task::~task() {
    if (!reported_) return;
    under_way = false;
    watcher({what_, done_, total_, false, true});
}

void task::step(std::uint64_t steps) {
    const std::uint64_t done = done_ += steps;
    if (!reported_ || thread_ != std::this_thread::get_id()) return;
    watcher({what_, done, total_, false, false});
}

}  // namespace mx::base
