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

#include "libmx/base/status.hpp"

namespace mx::app {
namespace {

std::atomic<bool> interrupted_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_signal(int number) {
    interrupted_flag.store(true);
    std::signal(number, SIG_DFL);
}

// Whether a status is on the screen; the guard is held while stderr is written to.
bool status_shown = false;
std::mutex status_guard;

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

}  // namespace

void print(std::string_view text) {
    clear_status();
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void finish_stdout() {
    if (std::fflush(stdout) != 0) fail();
}

int table_width() {
    winsize size{};
    if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0) {
        return std::clamp<int>(size.ws_col, 60, 200);
    }
    return 100;
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
    std::signal(SIGXFSZ, SIG_IGN);  // a write past the limit on file sizes fails with EFBIG
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        // A signal that the parent had ignored (nohup, a background job) stays ignored.
        if (std::signal(number, on_signal) == SIG_IGN) std::signal(number, SIG_IGN);
    }
}

const std::atomic<bool>& interrupted() { return interrupted_flag; }

}  // namespace mx::app
