// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/rates.hpp"

#include "libmx/report/members.hpp"

namespace mx::metrics {
namespace {

using report::share;
using report::tally;

}  // namespace

report::value overflow_rate(const totals& t) { return share(t.count.overflow, t.counted()); }
report::value clamp_rate(const totals& t) { return share(t.count.clamp, t.counted()); }
report::value top_code_rate(const totals& t) { return share(t.count.top_code, t.counted()); }
report::value underflow_rate(const totals& t) { return share(t.count.underflow, t.counted()); }

report::value subnormal_rate(const totals& t) {
    if (!t.has_subnormals) return {};
    return share(t.count.subnormal, t.counted());
}

report::value dequant_overflow(const totals& t) {
    if (!t.foreign) return {};
    return tally(t.count.dequant_overflow);
}

report::value eligible_blocks(const totals& t) { return tally(t.block.eligible); }
report::value collapsed_block_rate(const totals& t) {
    return share(t.block.collapsed, t.block.eligible);
}
report::value saturated_block_rate(const totals& t) {
    return share(t.block.saturated, t.block.eligible);
}
report::value dead_block_rate(const totals& t) { return share(t.block.dead, t.block.eligible); }
report::value zero_blocks(const totals& t) { return tally(t.block.zero); }

report::value bits_per_element(const totals& t) {
    if (t.count.elements == 0) return {};
    const double side_bits = static_cast<double>(t.bits_per_block) *
                             static_cast<double>(t.block.blocks) /
                             static_cast<double>(t.count.elements);
    return static_cast<double>(t.element_bits) + side_bits;
}

}  // namespace mx::metrics
