// SPDX-License-Identifier: Apache-2.0
// What `mx gate` says.
#pragma once

#include "libmx/pipeline/gate/gate.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The document of a gate; its table shows the `top` farthest breaches of each rule.
report::document gate_document(const std::vector<pipeline::gate::gate_rule>& rules,
                               const pipeline::gate::gate_inputs& inputs,
                               const pipeline::gate::gate_verdict& verdict, std::size_t top);

/// [{"path", "bytes"}] of files of results.
report::list results_list(const std::vector<pipeline::results_input>& inputs);

}  // namespace mx::app
