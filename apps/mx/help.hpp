// SPDX-License-Identifier: Apache-2.0
// Help texts, made from the list of commands and their declared options.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mx/commands.hpp"

namespace mx::app {

/// Name, help flag and summary, the same for every command.
void set_up(parser& cmd, const command& c);

/// Every option of `cmd`, arguments first, groups together.
std::vector<option_line> option_lines(const parser& cmd);

/// What help lists of `cmd`: its own options, then a line with the names of those on each topic's
/// page.
std::vector<option_line> help_lines(const parser& cmd);

/// Options of many commands, which 'mx help NAME' describes once.
struct help_topic {
    help_page page;
    std::string_view name, summary;
    std::string (*description)();
};
/// THE LIST of topics, in the order of commands' help.
std::span<const help_topic> help_topics();

/// The options that the same commands have, under one heading.
struct topic_section {
    std::string heading;  ///< with those commands
    std::vector<option_line> lines;
};
std::vector<topic_section> topic_sections(help_page page);

/// The output of `mx help NAME` for a topic.
std::string help_text(const help_topic& topic, std::size_t width);

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
