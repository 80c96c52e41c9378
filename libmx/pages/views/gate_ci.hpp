// SPDX-License-Identifier: Apache-2.0
// What continuous integration reads of `mx gate`: JUnit XML, and annotations of GitHub.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/studies/gate/gate.hpp"

namespace mx::pages {

/// JUnit XML: a test case per rule, with the `top` farthest breaches where it does not hold. What
/// XML cannot hold of names is written as \xNN.
std::string gate_junit(const std::vector<analysis::gate_rule>& rules,
                       const gate::gate_inputs& inputs, const gate::gate_verdict& verdict,
                       std::size_t top);

/// A line "::error file=...,title=...::..." per rule that does not hold: at the rule's line where
/// it comes from a file, else at the file of the farthest breach, else at the first of the inputs.
std::vector<std::string> gate_annotations(const std::vector<analysis::gate_rule>& rules,
                                          const gate::gate_inputs& inputs,
                                          const gate::gate_verdict& verdict, std::size_t top);

}  // namespace mx::pages
