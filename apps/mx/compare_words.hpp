// SPDX-License-Identifier: Apache-2.0
// What a comparison says, in words: which cell, by how much, what it costs, and what to doubt.
#pragma once

#include <string>
#include <vector>

#include "libmx/pipeline/compare/comparison.hpp"

namespace mx::app {

/// "4 to 5": the bits per element of a class.
std::string bits_words(const pipeline::compare::bits_class& k);

/// Paragraphs and list items ("- ...").
std::vector<std::string> compare_verdict(const pipeline::compare::sweep_plan& plan,
                                         const pipeline::compare::comparison& c);

}  // namespace mx::app
