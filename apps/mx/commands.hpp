// SPDX-License-Identifier: Apache-2.0
// What a command is. commands.cpp has THE LIST; no other source compiles again when a row is added.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "apps/mx/cli.hpp"

namespace mx::app {

/// Runs a command with its parsed options; returns the exit code. Failures are thrown
/// (base::error), never printed here.
using runner = std::function<int()>;

/// Declares options, description and examples (as the footer) on `cmd`, and returns the function to
/// run. It owns the options' storage (a shared_ptr); there are no globals.
using declare_function = runner (*)(parser& cmd);

struct command {
    std::string_view name;   ///< one word, or two: "study speedups"
    std::string_view group;  ///< of one word: where 'mx help' lists it
    std::string_view summary;
    declare_function declare;
};

/// All commands, in the order of 'mx help'.
std::span<const command> commands();

/// The command that the words begin with. Throws base::error (usage) if there is none.
const command& command_named(std::span<const std::string> words);

/// Parses the command line and returns the function to run (also for help and --version). Throws
/// base::error (usage) with one line that names the error and the help page.
runner parse_command_line(int argc, char** argv);

}  // namespace mx::app
