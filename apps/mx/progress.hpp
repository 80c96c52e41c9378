// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr: share, rate and time left. Nothing if stderr is not a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "libmx/base/task.hpp"
#include "libmx/engine/control.hpp"

namespace mx::app {

/// The unit of progress.
enum class progress_unit : std::uint8_t {
    elements,
    none,  ///< parts of the whole: no rate is shown
};

/// The callback for run_control::on_progress; empty if stderr is not a terminal or `quiet` is set.
/// The bar disappears with the first output, at the latest when the last copy of the callback is
/// destroyed.
std::function<void(const engine::progress&)> progress_bar(
    bool quiet, progress_unit unit = progress_unit::elements);

/// Lets signals cancel the tasks of this thread (base/task.hpp) with base::error (cancelled), and
/// shows a bar for each, as progress_bar does.
void follow_tasks(bool quiet);

/// The bar of work counted in steps; step() is thread-safe.
class step_bar {
  public:
    step_bar(bool quiet, std::uint64_t total)
        : total_(total), show_(progress_bar(quiet, progress_unit::none)) {}
    void step() {
        if (!show_) return;
        const std::lock_guard lock(guard_);
        ++done_;
        show_({done_, total_});
    }

  private:
    std::uint64_t total_, done_ = 0;
    std::function<void(const engine::progress&)> show_;
    std::mutex guard_;
};

/// One line of fewer than `width` columns, unless a bar of one cell needs more:
/// "[#####.....]  42%  1.23 G elements/s  0:12 left".
std::string progress_text(const engine::progress& p, double seconds, progress_unit unit, int width);

}  // namespace mx::app
