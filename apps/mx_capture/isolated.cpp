// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/isolated.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

namespace mx::capture {
namespace {

using clock = std::chrono::steady_clock;

// The driver may block a killed process indefinitely if the GPU no longer responds.
constexpr std::chrono::seconds most_ending{60};

bool send(int out, const std::string& answer) {
    std::size_t sent = 0;
    while (sent < answer.size()) {
        const ssize_t count = write(out, answer.data() + sent, answer.size() - sent);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        sent += static_cast<std::size_t>(count);
    }
    return true;
}

// Answers are '+' or '-', a text and '\0'.
[[noreturn]] void run_child(int out, std::size_t count,
                            const std::function<std::string(std::size_t)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child must not keep the GPU if the recording is killed
    for (std::size_t n = 0; n < count; ++n) {
        std::string answer;
        try {
            answer = "+" + body(n);
        } catch (const std::exception& e) {
            answer = std::string("-") + e.what();
        }
        if (!send(out, answer + '\0') || answer[0] == '-') break;
    }
    _exit(0);
}

enum class arrival { whole, closed, late };

// Waits for a whole answer at the beginning of `text`.
arrival receive(int in, unsigned seconds, std::string& text) {
    const auto end = clock::now() + std::chrono::seconds(seconds);
    while (text.find('\0') == std::string::npos) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
        if (left <= 0) return arrival::late;
        pollfd waiting{in, POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(left));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return arrival::late;
        char buffer[4096];
        const ssize_t count = read(in, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return arrival::closed;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    return arrival::whole;
}

std::optional<int> status_of(pid_t child) {
    const auto end = clock::now() + most_ending;
    do {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) return status;
        if (ended < 0 && errno != EINTR) return {};
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (clock::now() < end);
    return {};
}

std::string why(arrival how, const std::optional<int>& status, unsigned seconds) {
    if (how == arrival::late) return fmt::format("was not done in {} seconds", seconds);
    if (status && WIFSIGNALED(*status)) return fmt::format("ended by signal {}", WTERMSIG(*status));
    return "ended without an answer";
}

}  // namespace

std::size_t run_series(std::size_t count, const std::function<std::string(std::size_t)>& body,
                       unsigned seconds,
                       const std::function<void(std::size_t, const outcome&)>& ended) {
    int ends[2];
    if (pipe(ends) != 0) {
        ended(0, {false, fmt::format("no pipe: {}", std::strerror(errno))});
        return 1;
    }
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) {
        const std::string reason = std::strerror(errno);
        close(ends[0]);
        close(ends[1]);
        ended(0, {false, fmt::format("no process: {}", reason)});
        return 1;
    }
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], count, body);
    }
    close(ends[1]);
    std::size_t done = 0;
    arrival how = arrival::whole;
    bool fine = true;
    std::string text;
    try {
        while (fine && done < count) {
            how = receive(ends[0], seconds, text);
            if (how != arrival::whole) break;
            const std::size_t end = text.find('\0');
            fine = text[0] == '+';
            ended(done++, {fine, text.substr(1, end - 1)});
            text.erase(0, end + 1);
        }
    } catch (...) {
        kill(child, SIGKILL);
        close(ends[0]);
        status_of(child);
        throw;
    }
    close(ends[0]);
    if (how == arrival::late) kill(child, SIGKILL);
    std::optional<int> status = status_of(child);
    if (!status) {
        kill(child, SIGKILL);
        status = status_of(child);
    }
    if (how == arrival::whole) return done;
    ended(done, {false, why(how, status, seconds), how == arrival::late});
    return done + 1;
}

outcome run_isolated(const std::function<std::string()>& body, unsigned seconds) {
    outcome result;
    run_series(
        1, [&](std::size_t) { return body(); }, seconds,
        [&](std::size_t, const outcome& o) { result = o; });
    return result;
}

}  // namespace mx::capture
