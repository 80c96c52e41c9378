// SPDX-License-Identifier: Apache-2.0
// The results of mx gate as a document.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "libmx/documents/judging.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/gate/gate.hpp"

namespace mx::documents {

struct gate_options {
    std::vector<std::string> rules;       ///< as text
    std::vector<std::string> rule_files;  ///< one rule a line
    std::vector<std::string> recipes;     ///< names or patterns; none: results of all
    std::size_t top = 5;                  ///< breaches of each rule that are shown
    judging_options judging;
};

struct gated {
    std::vector<analysis::gate_rule> rules;
    gate::gate_inputs inputs;
    gate::gate_verdict verdict;
    report::document document;
};

/// Checks the results of `open` against the rules. Throws base::error.
gated gate(const gate_options& o,
           const std::function<gate::gate_inputs(const std::vector<analysis::gate_rule>&)>& open);

/// The schema mx.gate/1.
report::document_schema gate_schema();

}  // namespace mx::documents
