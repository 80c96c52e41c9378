// SPDX-License-Identifier: Apache-2.0
// Timing of passes: contestants alternate, so that a change of the machine's speed affects all of
// them alike.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>

#include "libmx/base/parallel.hpp"
#include "libmx/engine/control.hpp"

namespace mx::bench {

inline constexpr int least_rounds = 5;

template <typename Body>
double seconds_of(Body&& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Calls round() least_rounds times, then until `seconds` have passed. Before each call,
/// `on_share`, if set, receives the fraction done, 0 to 1. Throws base::error (cancelled) if
/// `cancel` is set before a call.
/// before one.
template <typename Round>
void take_turns(double seconds, const std::atomic<bool>* cancel,
                const std::function<void(double)>& on_share, Round&& round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0;; ++i) {
        const std::chrono::duration<double> past = std::chrono::steady_clock::now() - start;
        if (i >= least_rounds && past.count() >= seconds) return;
        if (on_share) on_share(std::min(1.0, past.count() / seconds));
        base::stop_if(cancel);
        round();
    }
}

/// Progress of a measurement that consists of equal parts.
class part_progress {
  public:
    explicit part_progress(const std::function<void(const engine::progress&)>& hear)
        : hear_(hear) {}
    void add_parts(std::size_t count) { parts_ += count; }
    /// Reports the fraction done of the current part.
    void report(double share) const {
        if (!hear_) return;
        const double done = (static_cast<double>(done_) + share) * 1000;
        hear_({static_cast<std::uint64_t>(std::lround(done)), parts_ * 1000});
    }
    void end_part() { ++done_; }

  private:
    const std::function<void(const engine::progress&)>& hear_;
    std::size_t parts_ = 0, done_ = 0;
};

}  // namespace mx::bench
