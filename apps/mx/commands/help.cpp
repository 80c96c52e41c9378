// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/help.hpp"
#include "apps/mx/options.hpp"

#include "apps/mx/manual.hpp"
#include "apps/mx/pager.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/named.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::app {
namespace {

struct help_options {
    std::vector<std::string> command_name;
    std::string manual_directory, share_directory;
    bool no_pager = false;
};

std::string text_about(const std::vector<std::string>& words, std::size_t width) {
    const auto topics = help_topics();
    if (const help_topic* t = base::find_named(topics, words.front())) return help_text(*t, width);
    const std::string near = base::similar(words.front(), base::names_of(topics));
    if (!near.empty() && base::find_named(commands(), words.front()) == nullptr) {
        refuse("unknown command '{}'; did you mean '{}'? ('mx help' lists the commands)",
               words.front(), near);
    }
    return help_text(command_named(words), width);
}

int run_help(const help_options& o) {
    if (!o.manual_directory.empty()) {
        write_manual(o.manual_directory);
        return exit_code::fine;
    }
    if (!o.share_directory.empty()) {
        write_share(o.share_directory);
        return exit_code::fine;
    }
    if (o.command_name.empty()) {
        print(overview(terminal_help_width()));
        return exit_code::fine;
    }
    const std::string text = text_about(o.command_name, terminal_help_width());
    if (o.no_pager) {
        print(text);
    } else {
        print_paged(text);
    }
    return exit_code::fine;
}

}  // namespace

runner declare_help(parser& cmd) {
    const auto o = std::make_shared<help_options>();
    cmd.group("Input");
    cmd.add_option("COMMAND", o->command_name,
                   fmt::format("one of the commands, or of the options that many share: {}",
                               base::joined(base::names_of(help_topics()), ", ")))
        ->expected(0, 2);
    cmd.add_flag("--no-pager", o->no_pager, "print it all at once, however long it is");
    cmd.group("");
    cmd.add_option("--write-manual DIR", o->manual_directory,
                   "write reference/*.md and design/*.md into this directory");
    cmd.add_option("--write-share DIR", o->share_directory,
                   "write man/mx.1 and schemas/*.json into this directory");
    return [o] { return run_help(*o); };
}

}  // namespace mx::app
