// SPDX-License-Identifier: Apache-2.0
// Shares of finite, unpoisoned elements, and of eligible blocks; null where there are none.
#pragma once

#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// |y| beyond the largest value of the format, before rounding (Yang et al.'s overflow).
report::value overflow_rate(const totals& t);
/// The rounded |y| beyond the largest value: saturation changed it.
report::value clamp_rate(const totals& t);
/// q is the largest code of its sign (Su et al.'s last bin).
report::value top_code_rate(const totals& t);
/// x != 0 (with an offset x - O != 0) and q = 0.
report::value underflow_rate(const totals& t);
/// 0 < |q| < smallest normal; null for formats without subnormals.
report::value subnormal_rate(const totals& t);

/// Elements whose d overflows float32 as the dialect computes it, though S and q are finite (a
/// count); null under dialect ocp, whose d is exact.
report::value dequant_overflow(const totals& t);

/// Blocks with at least two non-zero finite elements (a count).
report::value eligible_blocks(const totals& t);
/// Of eligible blocks: all non-zero inputs carry the same non-zero code magnitude.
report::value collapsed_block_rate(const totals& t);
/// Of eligible blocks: all non-zero inputs carry the largest code of their sign.
report::value saturated_block_rate(const totals& t);
/// Of eligible blocks: all non-zero inputs underflow.
report::value dead_block_rate(const totals& t);
/// Blocks of zeros only (a count).
report::value zero_blocks(const totals& t);

/// Element bits plus scale and offset bits per existing block, over the elements.
report::value bits_per_element(const totals& t);

}  // namespace mx::metrics
