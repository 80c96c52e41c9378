// SPDX-License-Identifier: Apache-2.0
// Completions of a command line for shells: printed by `mx --complete WORD...` and read by the
// scripts in completions/.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mx::app {

/// One completion: the whole last word, and its description if known.
struct candidate {
    std::string word;
    std::string meaning;
};

/// Completions of the last of `words`, which are those after `mx`; empty if a file name may follow
/// or nothing is known. A completion that ends in ':', ',' or '=' can be continued. Opens the files
/// among the words to read names of tensors. Never throws for incomplete or wrong input.
std::vector<candidate> completions(std::span<const std::string> words);

/// The output of `mx --complete WORD...`: one per line, the description after a tab.
std::string completion_lines(std::span<const std::string> words);

}  // namespace mx::app
