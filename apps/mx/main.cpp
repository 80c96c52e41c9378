// SPDX-License-Identifier: Apache-2.0
// mx: block-scaled formats, bit for bit, on the tensors of a checkpoint. Installs signal handlers,
// finds the command in the list, runs it, and turns any failure into one line and an exit code.
#include "apps/mx/commands.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/ranks.hpp"
#include "apps/mx/terminal.hpp"

int main(int argc, char** argv) {
    using namespace mx::app;
    if (in_ranks()) return run_in_ranks(argc, argv);
    return guarded([&] {
        watch_signals();
        const runner run = parse_command_line(argc, argv);
        return run();
    });
}
