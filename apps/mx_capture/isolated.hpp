// SPDX-License-Identifier: Apache-2.0
// A part of a recording in a process of its own: an instruction that a card refuses ends the
// context, and one that waits for what never comes would end the recording.
#pragma once

#include <functional>
#include <string>

namespace mx::capture {

struct outcome {
    bool fine = false;
    std::string text;  ///< what the body returned, or why it failed
};

/// Runs `body` in a forked child for at most `seconds`. Neither CUDA nor threads may have been used
/// in this process before.
outcome run_isolated(const std::function<std::string()>& body, unsigned seconds);

}  // namespace mx::capture
