// SPDX-License-Identifier: Apache-2.0
// The output of `mx gate`.
#pragma once

#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/gate/gate.hpp"

namespace mx::pages {

/// The document of a gate; its table shows the `top` worst violations of each rule.
report::document gate_document(const std::vector<analysis::gate_rule>& rules,
                               const gate::gate_inputs& inputs, const gate::gate_verdict& verdict,
                               std::size_t top);

/// The value that violates a rule: "0.125", "undefined", "loses 96.9 % of its elements to zero
/// (limit 20 %)".
std::string gate_finding(const gate::breach& b);

/// Why a rule does not hold: "broken by 2 of 94 results".
std::string gate_problem(const gate::rule_verdict& v);

/// [{"path", "bytes"}] of results files.
report::list results_list(const std::vector<analysis::results_input>& inputs);

/// The schema mx.gate/1.
report::document_schema gate_schema();

}  // namespace mx::pages
