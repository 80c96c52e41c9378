// SPDX-License-Identifier: Apache-2.0
// Checks for continuous integration: JUnit XML, and annotations for GitHub.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mx::pages {

/// One check and how it ended.
struct ci_case {
    std::string name;
    bool holds = true;
    std::string file;                  ///< that states the check; may be empty
    std::uint64_t line = 0;            ///< in it
    std::string type;                  ///< of the failure, one word or two
    std::string problem;               ///< of the failure, one line
    std::vector<std::string> lines;    ///< details, one line each
    std::string at;                    ///< the file to annotate if `file` is empty
    std::string_view level = "error";  ///< of the annotation
};

/// JUnit XML: one test case per check. Characters that XML does not allow are written as \xNN.
/// `tool`: the command, "mx gate"; `subject`: the files that are checked.
std::string junit(std::string_view tool, const std::string& subject,
                  const std::vector<ci_case>& cases);

/// A line "::error file=...,title=...::..." per check that does not hold.
std::vector<std::string> annotations(std::string_view tool, const std::vector<ci_case>& cases);

}  // namespace mx::pages
