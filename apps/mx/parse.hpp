// SPDX-License-Identifier: Apache-2.0
// From the command line to the command to run.
#pragma once

#include <string>

#include "apps/mx/commands.hpp"

namespace mx::app {

/// Parses and returns what to run (help and --version included). Throws base::error (usage) with
/// one line: what is wrong and where help is.
runner parse_command_line(int argc, char** argv);

}  // namespace mx::app
