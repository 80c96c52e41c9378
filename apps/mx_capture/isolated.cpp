// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/isolated.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

namespace mx::capture {
namespace {

[[noreturn]] void run_child(int out, const std::function<std::string()>& body) {
    std::string answer;
    try {
        answer = "+" + body();
    } catch (const std::exception& e) {
        answer = std::string("-") + e.what();
    }
    std::size_t sent = 0;
    while (sent < answer.size()) {
        const ssize_t count = write(out, answer.data() + sent, answer.size() - sent);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
    }
    _exit(0);
}

// Everything that comes until the other end is closed; false when the time is over.
bool receive(int in, unsigned seconds, std::string& text) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::seconds(seconds);
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
        if (left <= 0) return false;
        pollfd waiting{in, POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(left));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        char buffer[4096];
        const ssize_t count = read(in, buffer, sizeof buffer);
        if (count <= 0) return true;
        text.append(buffer, static_cast<std::size_t>(count));
    }
}

}  // namespace

outcome run_isolated(const std::function<std::string()>& body, unsigned seconds) {
    int ends[2];
    if (pipe(ends) != 0) return {false, fmt::format("no pipe: {}", std::strerror(errno))};
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return {false, fmt::format("no process: {}", std::strerror(errno))};
    }
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], body);
    }
    close(ends[1]);
    std::string answer;
    const bool in_time = receive(ends[0], seconds, answer);
    close(ends[0]);
    if (!in_time) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) return {false, fmt::format("was not done in {} seconds", seconds)};
    if (WIFSIGNALED(status)) return {false, fmt::format("ended by signal {}", WTERMSIG(status))};
    if (answer.empty()) return {false, "ended without an answer"};
    return {answer[0] == '+', answer.substr(1)};
}

}  // namespace mx::capture
