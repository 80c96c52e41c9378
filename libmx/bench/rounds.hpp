// SPDX-License-Identifier: Apache-2.0
// How passes are timed: what is compared takes turns, so that a change of the machine's speed hits
// all alike.
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

/// round() least_rounds times, and again until `seconds` are over. `on_share`, if there is one, is
/// told the part done, 0 to 1, before each. Throws base::error (cancelled) where `cancel` is raised
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

/// Progress of a measurement of equal parts.
class part_progress {
  public:
    explicit part_progress(const std::function<void(const engine::progress&)>& hear)
        : hear_(hear) {}
    void add_parts(std::size_t count) { parts_ += count; }
    /// The share of the present part.
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
