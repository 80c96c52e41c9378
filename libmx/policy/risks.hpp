// SPDX-License-Identifier: Apache-2.0
// Which tensors a judgement's recipes harm most.
#pragma once

#include "libmx/policy/judge.hpp"
#include "libmx/policy/measurements.hpp"

namespace mx::policy {

/// Sets judgement::risks from its classes and decisions: one for each operand that a candidate
/// changes. `known`: of the same tensors.
void rank_risks(judgement& j, const measured_model& m, measurements& known);

}  // namespace mx::policy
