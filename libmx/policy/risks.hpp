// SPDX-License-Identifier: Apache-2.0
// Which tensors a judgement's recipes harm most.
#pragma once

#include "libmx/policy/judge.hpp"

namespace mx::policy {

/// Fills in judgement::risks and judgement::dominant from its classes and decisions. A share of
/// lost elements that is one tensor's is said to be so from `dominant` of it on.
void rank_risks(judgement& j, std::span<const measured_tensor> tensors, double dominant);

}  // namespace mx::policy
