// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/exit_code.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <new>

#include "apps/mx/terminal.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"

namespace mx::app {
namespace {

// By base::error_kind.
constexpr int codes[] = {exit_code::usage,       exit_code::input_output, exit_code::input_output,
                         exit_code::unavailable, exit_code::interrupted,  exit_code::fine};
static_assert(static_cast<int>(base::error_kind::closed_pipe) + 1 == std::size(codes));

bool running = false;

// A library may end the program. OpenMP does if the system grants no thread, with exit code 1.
void on_exit() {
    if (!running) return;
    io::discard_unfinished_outputs();
    remark(
        "a library ended the run; raise the limits of the system (ulimit -u, ulimit -v), ask for "
        "fewer --threads, and unset OMP_STACKSIZE");
    std::_Exit(exit_code::unavailable);
}

int complain(int code, const std::string& message) {
    io::discard_unfinished_outputs();
    remark(message);
    return code;
}

int outcome_of(const std::function<int()>& body) {
    try {
        const int code = body();
        finish_stdout();
        return code;
    } catch (const base::error& e) {
        // The reader has closed the pipe: no message.
        if (e.kind() == base::error_kind::closed_pipe) {
            io::discard_unfinished_outputs();
            return exit_code::fine;
        }
        // A signal interrupts a wait for a pipe with an unrelated error.
        if (e.kind() == base::error_kind::cancelled || interrupted()) {
            return complain(exit_code::interrupted, "interrupted");
        }
        return complain(codes[static_cast<std::size_t>(e.kind())], e.what());
    } catch (const std::bad_alloc&) {
        return complain(exit_code::input_output,
                        "out of memory: choose fewer tensors with --tensor, or fewer --threads");
    } catch (const std::exception& e) {
        return complain(exit_code::internal, fmt::format("internal error: {}", e.what()));
    }
}

}  // namespace

int guarded(const std::function<int()>& body) {
    static const bool registered = std::atexit(on_exit) == 0;
    running = registered;
    const int code = outcome_of(body);
    running = false;
    return code;
}

}  // namespace mx::app
