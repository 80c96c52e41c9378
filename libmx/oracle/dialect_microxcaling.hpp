// SPDX-License-Identifier: Apache-2.0
// microsoft/microxcaling@7bc4195 mx_ops._quantize_mx and elemwise_ops._quantize_elemwise_core, as
// the tensor operations they consist of, in the arithmetic of the tensor.
#pragma once

#include "libmx/oracle/arithmetic.hpp"
#include "libmx/oracle/dialects.hpp"

namespace mx::oracle::microxcaling {

/// floor(log2 amax), amax 0 as 2^-126, less emax; NaN beyond 2^127.
block_scale scale(const float_kind& kind, const value_list& list, const block_maximum& m);

element convert(const float_kind& kind, const recipe& r, const value_list& list, float x,
                const block_scale& s);

/// Whether flush_fp32_subnorms multiplies a block with this maximum by zero.
bool flushes(const block_maximum& m);

}  // namespace mx::oracle::microxcaling
