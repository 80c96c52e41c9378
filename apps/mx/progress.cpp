// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "apps/mx/terminal.hpp"
#include "libmx/base/parallel.hpp"

namespace mx::app {
namespace {

using clock = std::chrono::steady_clock;

std::string rate_text(double per_second) {
    if (per_second >= 1e9) return fmt::format("{:.2f} G", per_second * 1e-9);
    if (per_second >= 1e6) return fmt::format("{:.1f} M", per_second * 1e-6);
    return fmt::format("{:.0f} k", per_second * 1e-3);
}

std::string time_text(double seconds) {
    const long whole = std::lround(seconds);
    if (whole >= 3600)
        return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
    return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

class bar {
  public:
    explicit bar(progress_unit unit, std::string_view what = {}) : unit_(unit), what_(what) {}
    ~bar() { clear_status(); }
    void update(const engine::progress& p) {
        const clock::time_point now = clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        const double seconds = std::chrono::duration<double>(now - start_).count();
        const std::string label = what_.empty() ? "" : std::string(what_) + " ";
        const int width = status_width() - static_cast<int>(label.size());
        show_status(label + progress_text(p, seconds, unit_, width));
    }

  private:
    progress_unit unit_;
    std::string_view what_;
    clock::time_point start_ = clock::now();
    // Draws nothing in the first tenth of a second, so that short runs do not flicker.
    clock::time_point last_ = start_;
};

}  // namespace

std::string progress_text(const engine::progress& p, double seconds, progress_unit unit,
                          int width) {
    const double share =
        p.total == 0 ? 1.0
                     : std::min(1.0, static_cast<double>(p.done) / static_cast<double>(p.total));
    std::string text = fmt::format("] {:3.0f}%", 100 * share);
    const double rate = seconds > 0 ? static_cast<double>(p.done) / seconds : 0;
    if (unit == progress_unit::elements) text += fmt::format("  {} elements/s", rate_text(rate));
    if (rate > 0) {
        const double left = static_cast<double>(p.total) * (1 - share);
        text += fmt::format("  {} left", time_text(left / rate));
    }
    const int room = width - static_cast<int>(text.size()) - 2;
    const auto cells = static_cast<std::size_t>(std::clamp(room, 1, 30));
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(cells));
    return "[" + std::string(filled, '#') + std::string(cells - filled, '.') + text;
}

std::function<void(const engine::progress&)> progress_bar(bool quiet, progress_unit unit) {
    if (quiet || !stderr_is_terminal()) return {};
    const auto shared = std::make_shared<bar>(unit);
    return [shared](const engine::progress& p) { shared->update(p); };
}

void follow_tasks(bool quiet) {
    const bool shows = !quiet && stderr_is_terminal();
    const auto shown = std::make_shared<std::optional<bar>>();
    // A stopped run writes its output after the signal.
    const auto stopped_before = std::make_shared<bool>(false);
    base::watch_tasks([=](const base::task_state& t) {
        if (t.ended) return shown->reset();
        if (t.begins) *stopped_before = interrupted().load();
        if (!*stopped_before) base::stop_if(&interrupted());
        if (!shows || t.total == 0) return;
        if (!*shown) shown->emplace(progress_unit::none, t.what);
        (*shown)->update({t.done, t.total});
    });
}

}  // namespace mx::app
