// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr: share, rate and time left. Nothing when stderr is no terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "libmx/base/task.hpp"
#include "libmx/engine/control.hpp"

namespace mx::app {

/// What progress counts.
enum class progress_unit : std::uint8_t {
    elements,
    none,  ///< parts of the whole: no rate is shown
};

/// The callback for run_control::on_progress; empty when there is nothing to draw on or `quiet`.
/// The bar vanishes with the first output, at the latest when the last copy of the callback does.
std::function<void(const engine::progress&)> progress_bar(
    bool quiet, progress_unit unit = progress_unit::elements);

/// Lets signals end the tasks of this thread (base/task.hpp), by base::error (cancelled), and shows
/// a bar for each as progress_bar does.
void follow_tasks(bool quiet);

/// The bar of work that is counted in steps; step() is safe to call from any thread.
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

/// One line of fewer than `width` columns, as far as a bar of one cell allows:
/// "[#####.....]  42%  1.23 G elements/s  0:12 left".
std::string progress_text(const engine::progress& p, double seconds, progress_unit unit, int width);

}  // namespace mx::app
