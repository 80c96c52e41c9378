// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/pager.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/mx/settings.hpp"
#include "apps/mx/terminal.hpp"

namespace mx::app {
namespace {

std::string pager_command() {
    if (const auto own = setting_of("pager")) return own->value;
    const std::string shared = environment("PAGER");
    return shared.empty() ? "less" : shared;
}

// Whether a command of that name succeeded; its output is then on the screen.
bool shown_by(const std::string& command, const std::string& text) {
    // As in git: quit if everything fits, and leave the text on the screen.
    ::setenv("LESS", "FRX", 0);  // NOLINT(concurrency-mt-unsafe): no thread was started
    FILE* pipe = ::popen(command.c_str(), "w");  // NOLINT(cert-env33-c): the user's own words
    if (pipe == nullptr) return false;
    // A pager that the user quits early is not an error.
    std::fwrite(text.data(), 1, text.size(), pipe);
    // 126 and 127 come from the shell: there is no such command.
    const int status = ::pclose(pipe);
    return WIFEXITED(status) && WEXITSTATUS(status) < 126;
}

}  // namespace

void print_paged(const std::string& text) {
    const int rows = terminal_rows();
    const std::string command = rows > 0 ? pager_command() : "";
    const bool fits = std::ranges::count(text, '\n') < rows;
    if (rows > 0 && !fits && !command.empty() && command != "cat" && shown_by(command, text)) {
        return;
    }
    print(text);
}

}  // namespace mx::app
