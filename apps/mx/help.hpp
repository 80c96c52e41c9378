// SPDX-License-Identifier: Apache-2.0
// Help texts, made from the list of commands and their declared options.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/commands.hpp"

namespace mx::app {

/// An option or argument as help, the man page and docs/reference print it.
struct option_line {
    std::string group;
    std::string spelling;  ///< "-t,--tensor GLOB", "FILE..."
    std::string text;
    bool required = false;
    bool positional = false;
};

/// Name, help flag and summary, the same for every command.
void set_up(CLI::App& parser, const command& c);

/// Every option of `parser`, arguments first, groups together.
std::vector<option_line> option_lines(const CLI::App& parser);

/// "mx cast FILE... -o OUT --element F [options]".
std::string synopsis(const CLI::App& parser, const command& c);

/// What `mx help` prints.
std::string overview();

/// What `mx help NAME` and `mx NAME --help` print.
std::string help_text(const CLI::App& parser, const command& c);
std::string help_text(const command& c);

}  // namespace mx::app
