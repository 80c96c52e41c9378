// SPDX-License-Identifier: Apache-2.0
// What a run reports to its caller while it goes on: the library itself never prints.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace mx::base {

/// Of one run and all its threads.
class notices {
  public:
    /// `say` receives one line without a newline, from one thread at a time. `details`: report
    /// details as well.
    explicit notices(std::function<void(const std::string&)> say, bool details = false)
        : say_(std::move(say)), details_(details) {}

    /// Reports `text` unless something was reported about `subject` before.
    void once(const std::string& subject, const std::string& text) {
        const std::lock_guard lock(guard_);
        if (said_.insert(subject).second && say_) say_(text);
    }

    /// Reports `text`, a detail of how a result is computed, once.
    void detail(const std::string& text) {
        if (details_) once(text, text);
    }

  private:
    std::mutex guard_;
    std::set<std::string> said_;
    std::function<void(const std::string&)> say_;
    bool details_;
};

}  // namespace mx::base
