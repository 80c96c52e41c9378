// SPDX-License-Identifier: Apache-2.0
// Output of `mx gate` for continuous integration: JUnit XML, and annotations for GitHub.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/studies/gate/gate.hpp"

namespace mx::pages {

/// JUnit XML: one test case per rule, with the `top` worst violations if it does not hold.
/// Characters that XML does not allow are written as \xNN.
std::string gate_junit(const std::vector<analysis::gate_rule>& rules,
                       const gate::gate_inputs& inputs, const gate::gate_verdict& verdict,
                       std::size_t top);

/// A line "::error file=...,title=...::..." per rule that does not hold: at the rule's line if it
/// comes from a file, else at the file of the worst violation, else at the first input.
std::vector<std::string> gate_annotations(const std::vector<analysis::gate_rule>& rules,
                                          const gate::gate_inputs& inputs,
                                          const gate::gate_verdict& verdict, std::size_t top);

}  // namespace mx::pages
