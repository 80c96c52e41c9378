// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/help.hpp"

#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/manual.hpp"
#include "apps/mx/names.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"

namespace mx::app {
namespace {

struct options {
    std::string command_name;
    std::string manual_directory;
};

int run(const options& o) {
    if (!o.manual_directory.empty()) {
        write_manual(o.manual_directory);
        return exit_code::fine;
    }
    if (o.command_name.empty()) {
        print(overview());
        return exit_code::fine;
    }
    const command* c = find_command(o.command_name);
    if (c == nullptr) {
        throw base::error(base::error_kind::usage,
                          base::unknown("command", o.command_name, names_of(commands)));
    }
    print(help_text(*c));
    return exit_code::fine;
}

}  // namespace

runner declare_help(parser& cmd) {
    const auto o = std::make_shared<options>();
    cmd.add_option("COMMAND", o->command_name, "one of the commands")->group("Input");
    cmd.add_option("--write-manual", o->manual_directory,
                   "write reference/*.md and man/mx.1 into this directory")
        ->type_name("DIR")
        ->group("");  // for whoever works on mx itself
    return [o] { return run(*o); };
}

}  // namespace mx::app
