// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands.hpp"

#include <algorithm>

#include "apps/mx/completion.hpp"
#include "apps/mx/help.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/pager.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"

namespace mx::app {
namespace {

runner print_later(std::string text) {
    return [text = std::move(text)] {
        print_paged(text);
        return exit_code::fine;
    };
}

}  // namespace

const command& command_named(std::span<const std::string> words) {
    if (words.size() > 1) {
        if (const command* c = base::find_named(commands, words[0] + " " + words[1])) return *c;
    }
    if (const renamed_command* old = base::find_named(renamed_commands, words[0])) {
        refuse("'mx {}' is now 'mx {}'", old->name, old->now);
    }
    if (const command* c = base::find_named(commands, words[0])) return *c;
    const std::string near = base::similar(words[0], base::names_of(commands));
    refuse("unknown command '{}'{} ('mx help' lists the commands)", words[0],
           near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
}

runner parse_command_line(int argc, char** argv) {
    const std::string first = argc > 1 ? argv[1] : "--help";
    if (first == "-h" || first == "--help") return print_later(overview(terminal_help_width()));
    if (first == "--complete") {
        const std::vector<std::string> words(argv + 2, argv + argc);
        return print_later(completion_lines(words));
    }
    if (first == "--version") return print_later(fmt::format("mx {}\n", MX_VERSION));
    if (first.rfind('-', 0) == 0) {
        refuse("{}: options come after the command; 'mx help' lists commands", first);
    }
    const std::vector<std::string> words(argv + 1, argv + argc);
    const command& chosen = command_named(words);
    const int skipped = chosen.name == first ? 1 : 2;
    parser cmd;
    runner run = chosen.declare(cmd);
    set_up(cmd, chosen);
    try {
        if (!cmd.parse(argc - skipped, argv + skipped))
            return print_later(help_text(cmd, chosen, terminal_help_width()));
    } catch (const base::error& e) {
        const bool asks = e.message().ends_with('?');
        refuse("{}: {}{} 'mx help {}'", chosen.name, e.message(), asks ? " See" : "; see",
               chosen.name);
    }
    cmd.take_settings();
    const auto is_quiet = [](const std::string& word) { return word.starts_with("--quiet="); };
    follow_tasks(std::ranges::any_of(cmd.given({}), is_quiet));
    return run;
}

}  // namespace mx::app
