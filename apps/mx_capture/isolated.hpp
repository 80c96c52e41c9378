// SPDX-License-Identifier: Apache-2.0
// Runs parts of a recording in a separate process: an instruction that a GPU rejects destroys the
// context, and one that never completes would block the recording.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace mx::capture {

struct outcome {
    bool fine = false;
    std::string text;   ///< the body's result, or why it failed; without '\0'
    bool late = false;  ///< it timed out
};

/// Calls body(0), body(1), ... in one forked child, each for at most `seconds`, until one fails or
/// `count` calls were made. After each call, calls ended(n, outcome) in this process. Returns the
/// number of calls that ended. This process must not have used CUDA or threads before.
std::size_t run_series(std::size_t count, const std::function<std::string(std::size_t)>& body,
                       unsigned seconds,
                       const std::function<void(std::size_t, const outcome&)>& ended);

/// The same for a single body.
outcome run_isolated(const std::function<std::string()>& body, unsigned seconds);

}  // namespace mx::capture
