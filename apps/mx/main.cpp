// SPDX-License-Identifier: Apache-2.0
// mx: block-scaled formats, bit for bit, on the tensors of a checkpoint. Installs signal handlers,
// finds the command in the list, runs it, and turns any failure into one line and an exit code.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string_view>

#include "apps/mx/commands.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/ranks.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/status.hpp"

namespace {

// Runs before the libraries initialize themselves: short of memory, some of them end the program,
// with an exit code that means something else. Calls of the system only.
void require_memory() {
    constexpr std::size_t least = 4 << 20;
    void* const some =
        ::mmap(nullptr, least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (some != MAP_FAILED) {
        ::munmap(some, least);
        return;
    }
    constexpr std::string_view message =
        "mx: less than 4 MiB of memory are left to start; raise the limit (ulimit -v)\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
    ::_exit(mx::app::exit_code::unavailable);
}
[[gnu::used, gnu::section(".preinit_array")]] void (*const before_libraries)() = require_memory;

// On a smaller stack, the main thread or those of loops would end mx with a signal.
void require_stack() {
    constexpr rlim_t least = 512 << 10;
    rlimit limit{};
    if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least) return;
    throw mx::base::error(
        mx::base::error_kind::unavailable,
        fmt::format("a stack of {} KiB is too small; raise its limit (ulimit -s 8192)",
                    limit.rlim_cur >> 10));
}

}  // namespace

int main(int argc, char** argv) {
    using namespace mx::app;
    const mx::base::floating_point_environment ours;
    if (in_ranks()) return run_in_ranks(argc, argv);
    return guarded([&] {
        watch_signals();
        require_stack();
        const runner run = parse_command_line(argc, argv);
        return run();
    });
}
