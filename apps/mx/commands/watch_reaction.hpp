// SPDX-License-Identifier: Apache-2.0
// The command that mx watch runs when a rule is broken.
#pragma once

#include <string>

#include "libmx/report/record.hpp"

namespace mx::app {

/// Runs `command` in a shell and waits for it: the line of a checkpoint on standard input, and
/// MX_WATCH_CHECKPOINT, MX_WATCH_STEP, MX_WATCH_WARNINGS (how many), MX_WATCH_TENSOR and
/// MX_WATCH_MESSAGE (of the first warning) in the environment. Returns what is to be said of a
/// command that failed, else "".
std::string run_reaction(const std::string& command, const report::record& line);

}  // namespace mx::app
