// SPDX-License-Identifier: Apache-2.0
// A plan in the words of torchao and of compressed-tensors, which llm-compressor takes.
#pragma once

#include "libmx/report/record.hpp"
#include "libmx/studies/plan/plan.hpp"

namespace mx::plan {

/// {"not_mapped", "torchao", "compressed_tensors"}: per recipe the arguments that give it there, or
/// null and why not, and which module has which. Modules are the matrices called MODULE.weight of
/// the role weight; other tensors are not mapped.
report::record mapping_of(const candidates& from, const plan& p);

}  // namespace mx::plan
