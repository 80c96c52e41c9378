// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>

#include "apps/mx/exit_code.hpp"
#include "apps/mx/settings.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/writer.hpp"

namespace mx::app {
namespace {

std::atomic<bool> interrupted_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

// Whether a status line is on the screen; writes to stderr hold the guard.
std::atomic<bool> status_shown{false};
std::mutex status_guard;

void on_signal(int) {
    interrupted_flag.store(true);
    // Reading headers looks at no flag; nothing but empty outputs is there to be put in order.
    if (!io::opening_scope::any() || !io::discard_unfinished_outputs_on_signal()) return;
    const std::string_view line = status_shown ? "\r\x1b[Kmx: interrupted\n" : "mx: interrupted\n";
    static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
    ::_exit(exit_code::interrupted);
}

void clear_shown() {
    if (!status_shown) return;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    status_shown = false;
}

[[noreturn]] void fail() {
    const auto kind = errno == EPIPE ? base::error_kind::closed_pipe : base::error_kind::output;
    throw base::error(kind,
                      fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

// The size of the terminal on stdout; none if stdout is not a terminal or has no size, as mpirun
// reports for a pipe.
std::optional<winsize> terminal_size() {
    winsize size{};
    if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
    if (size.ws_col == 0 || size.ws_row == 0) return {};
    return size;
}

}  // namespace

void print(std::string_view text) {
    clear_status();
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void finish_stdout() {
    if (std::fflush(stdout) != 0) fail();
}

int table_width() {
    constexpr int least = 60, most = 200;
    const std::optional<int> columns = base::parsed<int>(environment("COLUMNS"));
    if (columns && *columns > 0) return std::clamp(*columns, least, most);
    const std::optional<winsize> size = terminal_size();
    return size ? std::clamp<int>(size->ws_col, least, most) : 100;
}

int terminal_rows() {
    const std::optional<winsize> size = terminal_size();
    return size ? size->ws_row : 0;
}

bool stdout_is_colored(const std::string& choice) {
    if (choice == "always") return true;
    if (choice == "never") return false;
    const std::string force = environment("CLICOLOR_FORCE");
    if (!environment("NO_COLOR").empty()) return false;
    if (!force.empty() && force != "0") return true;
    return terminal_size() && environment("TERM") != "dumb";
}

int status_width() {
    winsize size{};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

void show_status(const std::string& text) {
    const std::lock_guard lock(status_guard);
    std::fputs(("\r" + text + "\x1b[K").c_str(), stderr);
    std::fflush(stderr);
    status_shown = true;
}

void clear_status() {
    const std::lock_guard lock(status_guard);
    clear_shown();
}

void remark(const std::string& message) {
    const std::lock_guard lock(status_guard);
    clear_shown();
    std::fputs(("mx: " + base::printable(message) + "\n").c_str(), stderr);
}

bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

void watch_signals() {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // writing beyond the file size limit fails with EFBIG
    struct sigaction stop {};
    stop.sa_handler = on_signal;
    // Without SA_RESTART, so that a wait for a pipe is interrupted and the run ends.
    stop.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        // A signal ignored by the parent (nohup, a background job) stays ignored.
        struct sigaction before {};
        sigaction(number, nullptr, &before);
        if (before.sa_handler != SIG_IGN) sigaction(number, &stop, nullptr);
    }
}

const std::atomic<bool>& interrupted() { return interrupted_flag; }

}  // namespace mx::app
