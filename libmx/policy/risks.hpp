// SPDX-License-Identifier: Apache-2.0
// Which tensors a judgement's recipes harm most.
#pragma once

#include "libmx/policy/judge.hpp"

namespace mx::policy {

/// Sets judgement::risks and judgement::dominant from its classes and decisions. From the share
/// `dominant` of the lost elements on, one tensor is named for them.
void rank_risks(judgement& j, std::span<const measured_tensor> tensors, double dominant);

}  // namespace mx::policy
