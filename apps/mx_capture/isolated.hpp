// SPDX-License-Identifier: Apache-2.0
// Parts of a recording in a process of their own: an instruction that a card refuses ends the
// context, and one that waits for what never comes would end the recording.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace mx::capture {

struct outcome {
    bool fine = false;
    std::string text;   ///< what the body returned, or why it failed; without '\0'
    bool late = false;  ///< it was given up
};

/// Calls body(0), body(1), ... in one forked child, each for at most `seconds`, until one fails or
/// there were `count`; after each calls ended(n, outcome) here. Returns how many ended. Neither
/// CUDA nor threads may have been used in this process before.
std::size_t run_series(std::size_t count, const std::function<std::string(std::size_t)>& body,
                       unsigned seconds,
                       const std::function<void(std::size_t, const outcome&)>& ended);

/// The same of one body.
outcome run_isolated(const std::function<std::string()>& body, unsigned seconds);

}  // namespace mx::capture
