// SPDX-License-Identifier: Apache-2.0
// Help texts, made from the list of commands and their declared options.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/commands.hpp"

namespace mx::app {

/// Name, help flag and summary, the same for every command.
void set_up(parser& cmd, const command& c);

/// Every option of `cmd`, arguments first, groups together.
std::vector<option_line> option_lines(const parser& cmd);

/// "mx dequantize FILE... -o OUT [options]".
std::string synopsis(const parser& cmd, const command& c);

/// The output of `mx help`.
std::string overview(std::size_t width);

/// The output of `mx help NAME` and `mx NAME --help`.
std::string help_text(const parser& cmd, const command& c, std::size_t width);
std::string help_text(const command& c, std::size_t width);

/// Columns of help on pages, and the maximum on a terminal: longer lines are hard to read.
inline constexpr std::size_t help_width = 100;

/// Columns of help on standard output.
std::size_t terminal_help_width();

}  // namespace mx::app
