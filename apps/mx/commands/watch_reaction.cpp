// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/watch_reaction.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "libmx/io/spool.hpp"
#include "libmx/report/json_line.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

// The environment of this process with some variables set.
std::vector<std::string> environment_with(const std::vector<std::string>& set) {
    std::vector<std::string> all = set;
    for (char** v = environ; *v != nullptr; ++v) {
        const std::string_view have(*v);
        bool replaced = false;
        for (const std::string& s : set) {
            replaced = replaced || have.starts_with(s.substr(0, s.find('=') + 1));
        }
        if (!replaced) all.emplace_back(have);
    }
    return all;
}

std::vector<std::string> variables_of(const report::record& line) {
    const auto* warnings = report::member<report::list>(line, "warnings");
    const report::record* const first = warnings == nullptr || warnings->empty()
                                            ? nullptr
                                            : std::get_if<report::record>(&warnings->front());
    const auto step = report::number_of(line, "step");
    const auto of_first = [&](const char* name) {
        return first == nullptr ? std::string() : report::text_of(*first, name);
    };
    return {"MX_WATCH_CHECKPOINT=" + report::text_of(line, "checkpoint"),
            "MX_WATCH_STEP=" + (step ? fmt::format("{:.0f}", *step) : std::string()),
            fmt::format("MX_WATCH_WARNINGS={}", warnings == nullptr ? 0 : warnings->size()),
            "MX_WATCH_TENSOR=" + of_first("tensor"), "MX_WATCH_MESSAGE=" + of_first("message")};
}

// A file for the command's input: a pipe would block if the command does not read, and break if it
// ends early.
int file_with(const std::string& text) {
    const int file = io::open_unnamed_file();
    if (!io::write_fully(file, 0, std::as_bytes(std::span(text.data(), text.size())))) {
        ::close(file);
        return -1;
    }
    return file;
}

}  // namespace

std::string run_reaction(const std::string& command, const report::record& line) {
    const int input = file_with(report::json_line(line) + "\n");
    if (input < 0)
        return fmt::format("--exec: cannot hand over the line: {}", std::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    // The command should not inherit ignored signals.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&signals, number);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    std::vector<std::string> variables = environment_with(variables_of(line));
    std::vector<char*> environment;
    for (std::string& v : variables) environment.push_back(v.data());
    environment.push_back(nullptr);
    std::array<std::string, 3> words{"sh", "-c", command};
    std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t child = 0;
    const int failure = ::posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments.data(),
                                      environment.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(input);
    if (failure != 0) return fmt::format("--exec: cannot start: {}", std::strerror(failure));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return fmt::format("--exec: {}", std::strerror(errno));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return WIFEXITED(status)
               ? fmt::format("--exec: the command ended with {}", WEXITSTATUS(status))
               : fmt::format("--exec: the command was ended by signal {}", WTERMSIG(status));
}

}  // namespace mx::app
