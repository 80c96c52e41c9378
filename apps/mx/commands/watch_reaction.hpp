// SPDX-License-Identifier: Apache-2.0
// The command that mx watch runs when a rule is violated.
#pragma once

#include <string>

#include "libmx/report/record.hpp"

namespace mx::app {

/// Runs `command` in a shell and waits for it. Its standard input is the line of a checkpoint; its
/// environment contains MX_WATCH_CHECKPOINT, MX_WATCH_STEP, MX_WATCH_WARNINGS (the number),
/// MX_WATCH_TENSOR and MX_WATCH_MESSAGE (of the first warning). Returns an error message if the
/// command failed, else "".
std::string run_reaction(const std::string& command, const report::record& line);

}  // namespace mx::app
