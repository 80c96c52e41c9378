// SPDX-License-Identifier: Apache-2.0
// Standard output, and what is known about the terminal behind it.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace mx::app {

/// Writes to standard output. Throws base::error: closed_pipe when its reader went away, output
/// when the disk is full or the descriptor is closed.
void print(std::string_view text);

/// Flushes standard output; throws as print does.
void finish_stdout();

/// Columns for a human table: COLUMNS, else the terminal's width when stdout is one, otherwise 100.
int table_width();

/// Lines of the terminal behind stdout; 0 when it is none.
int terminal_rows();

/// Whether tables on stdout are coloured. `choice` is what --color says: auto (on a terminal,
/// unless NO_COLOR or TERM=dumb speaks against it, and wherever CLICOLOR_FORCE asks for it),
/// always, never.
bool stdout_is_colored(const std::string& choice);

/// Whether stderr is a terminal (progress bars go there).
bool stderr_is_terminal();

/// Columns of the terminal behind stderr, 80 when unknown.
int status_width();

/// Shows `text` in the terminal's line under the cursor, in place of what was shown there.
void show_status(const std::string& text);

/// Takes that line away; print() does so before it writes, so that both can share a terminal.
void clear_status();

/// Writes the line "mx: message" to stderr, in place of the status. Of all threads.
void remark(const std::string& message);

/// Makes Ctrl-C, SIGTERM and SIGHUP raise interrupted() instead of ending the process, and turns
/// a closed pipe into a write error. A second signal ends the process at once.
void watch_signals();

/// Raised by the first signal; handed to the library as its cancel flag.
const std::atomic<bool>& interrupted();

}  // namespace mx::app
