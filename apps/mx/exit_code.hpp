// SPDX-License-Identifier: Apache-2.0
// THE LIST of exit codes, and how failures map to them.
#pragma once

#include <array>
#include <functional>
#include <string_view>

namespace mx::app {

namespace exit_code {
inline constexpr int fine = 0;
inline constexpr int difference = 1;
inline constexpr int usage = 2;
inline constexpr int input_output = 3;
inline constexpr int unavailable = 4;
inline constexpr int internal = 70;
inline constexpr int interrupted = 130;
}  // namespace exit_code

struct exit_code_row {
    int code;
    std::string_view meaning;
};

inline constexpr std::array exit_codes{
    exit_code_row{exit_code::fine, "success; a closed pipe on standard output is a normal end"},
    exit_code_row{exit_code::difference, "a check found a difference"},
    exit_code_row{exit_code::usage, "usage: an option, recipe or name that does not exist"},
    exit_code_row{
        exit_code::input_output,
        "an input could not be read, is malformed or has nothing to work on, or an output was not "
        "written"},
    exit_code_row{exit_code::unavailable, "the requested backend or feature is not available here"},
    exit_code_row{exit_code::internal, "a defect of mx itself: please report it"},
    exit_code_row{exit_code::interrupted, "interrupted (Ctrl-C); no incomplete output is left"},
};

/// Runs `body`. Prints an exception as one line on stderr and returns its exit code.
int guarded(const std::function<int()>& body);

}  // namespace mx::app
