// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/progress.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "apps/mx/terminal.hpp"

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
    ~bar() {
        if (drawn_) std::fputs("\r\x1b[K", stderr);
    }
    void update(const pipeline::progress& p) {
        const clock::time_point now = clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        drawn_ = true;
        const double seconds = std::chrono::duration<double>(now - start_).count();
        std::fputs(("\r" + progress_text(p, seconds) + "\x1b[K").c_str(), stderr);
        std::fflush(stderr);
    }

  private:
    clock::time_point start_ = clock::now();
    // The first tenth of a second draws nothing, so that short runs leave the terminal alone.
    clock::time_point last_ = start_;
    bool drawn_ = false;
};

}  // namespace

std::string progress_text(const pipeline::progress& p, double seconds) {
    constexpr std::size_t cells = 30;
    const double share =
        p.total == 0 ? 1.0 : static_cast<double>(p.done) / static_cast<double>(p.total);
    const double rate = seconds > 0 ? static_cast<double>(p.done) / seconds : 0;
    const auto filled = static_cast<std::size_t>(share * cells);
    std::string text = fmt::format("[{}{}] {:3.0f}%  {} elements/s", std::string(filled, '#'),
                                   std::string(cells - filled, '.'), 100 * share, rate_text(rate));
    if (p.done > 0) {
        text += fmt::format("  {} left", time_text(static_cast<double>(p.total - p.done) / rate));
    }
    return text;
}

std::function<void(const pipeline::progress&)> progress_bar(bool quiet) {
    if (quiet || !stderr_is_terminal()) return {};
    const auto shared = std::make_shared<bar>();
    return [shared](const pipeline::progress& p) { shared->update(p); };
}

}  // namespace mx::app
