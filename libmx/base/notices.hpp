// SPDX-License-Identifier: Apache-2.0
// What a caller should hear of a run that goes on: the library itself never prints.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace mx::base {

/// Of one run and all its threads.
class notices {
  public:
    /// `say` gets one line without a newline, from one thread at a time.
    explicit notices(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

    /// Says `text` unless something was said about `subject` before.
    void once(const std::string& subject, const std::string& text) {
        const std::lock_guard lock(guard_);
        if (said_.insert(subject).second && say_) say_(text);
    }

  private:
    std::mutex guard_;
    std::set<std::string> said_;
    std::function<void(const std::string&)> say_;
};

}  // namespace mx::base
