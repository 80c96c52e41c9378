// SPDX-License-Identifier: Apache-2.0
// Outcomes of checks for continuous integration: JUnit XML, and annotations for GitHub.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mx::pages {

/// A check and what it found.
struct ci_case {
    std::string name;
    std::string file;      ///< where it is annotated
    std::size_t line = 0;  ///< of that file; 0: none
    bool in_file = false;  ///< whether JUnit names the place, too
    bool failed = false;
    std::string kind, problem;       ///< if it failed: one word or two, and a sentence
    std::vector<std::string> found;  ///< findings, one per line
    bool error = true;               ///< an annotation of errors, else of warnings
};

/// JUnit XML. Characters that XML does not allow are written as \xNN. `tool`: "mx gate".
std::string ci_junit(std::string_view tool, const std::string& suite,
                     const std::vector<ci_case>& cases);

/// A line "::error file=...,title=...::..." per case that failed.
std::vector<std::string> ci_annotations(std::string_view tool, const std::vector<ci_case>& cases);

}  // namespace mx::pages
