// SPDX-License-Identifier: Apache-2.0
// One writer of a folder at a time.
#pragma once

#include <string>
#include <string_view>

namespace mx::io {

/// The lock of a folder among programs that take it. The system releases it however a program ends.
/// Where the file system has no locks, there is none.
class folder_lock {
  public:
    /// Waits for a program that holds the lock; with `writer`, the name of what holds it, refuses
    /// instead. "" is the current folder. Throws base::error: cancelled if a signal ends the wait;
    /// usage if it refuses.
    explicit folder_lock(const std::string& folder, std::string_view writer = {});
    ~folder_lock();
    folder_lock(const folder_lock&) = delete;
    folder_lock& operator=(const folder_lock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace mx::io
