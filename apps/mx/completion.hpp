// SPDX-License-Identifier: Apache-2.0
// What may follow on a command line, for shells: `mx --complete WORD...` prints it, and the scripts
// in completions/ ask for it.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mx::app {

/// One way to go on: the whole last word, and what it means where that is known.
struct candidate {
    std::string word;
    std::string meaning;
};

/// Ways to complete the last of `words`, which are those after `mx`; empty where a file name may
/// stand, or nothing is known. What ends in ':', ',' or '=' goes on. Opens the files among the
/// words for the names of tensors. Never throws for what is typed.
std::vector<candidate> completions(std::span<const std::string> words);

/// What `mx --complete WORD...` prints: a line each, the meaning after a tab.
std::string completion_lines(std::span<const std::string> words);

}  // namespace mx::app
