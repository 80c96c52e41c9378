// SPDX-License-Identifier: Apache-2.0
// Standard output, and properties of its terminal.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace mx::app {

/// Writes to standard output. Throws base::error: closed_pipe if its reader has closed it, output
/// if the disk is full or the descriptor is closed.
void print(std::string_view text);

/// Flushes standard output; throws as print does.
void finish_stdout();

/// Columns for a human table: COLUMNS, else the terminal's width if stdout is a terminal, else 100.
int table_width();

/// Lines of the terminal on stdout; 0 if stdout is not a terminal.
int terminal_rows();

/// Whether tables on stdout are coloured. `choice` is the value of --color: auto (on a terminal,
/// unless NO_COLOR or TERM=dumb is set, and always with CLICOLOR_FORCE), always, never.
bool stdout_is_colored(const std::string& choice);

/// Whether stderr is a terminal (progress bars go there).
bool stderr_is_terminal();

/// Columns of the terminal on stderr, 80 if unknown.
int status_width();

/// Shows `text` as the terminal's status line, replacing the previous one.
void show_status(const std::string& text);

/// Removes the status line; print() does so before it writes, because both share the terminal.
void clear_status();

/// Writes the line "mx: message" to stderr, replacing the status line. Thread-safe.
void remark(const std::string& message);

/// Makes Ctrl-C, SIGTERM and SIGHUP set interrupted() instead of ending the process, and turns a
/// closed pipe into a write error. A second signal ends the process immediately, and so does the
/// first while headers are read.
void watch_signals();

/// Set by the first signal; passed to the library as its cancel flag.
const std::atomic<bool>& interrupted();

}  // namespace mx::app
