// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/decomposition.hpp"

namespace mx::metrics {
namespace {

// Exact: the sign of a difference survives its rounding.
bool less(const base::exact_sum& a, const base::exact_sum& b) {
    base::exact_sum difference = a;
    difference.subtract(b);
    return difference.value() < 0;
}

report::value share(const totals& t, base::exact_sum part_sums::*part) {
    const double whole = t.sum.error2.value();
    if (whole == 0) return {};
    return (balanced_parts(t).*part).value() / whole;
}

}  // namespace

part_sums balanced_parts(const totals& t) {
    part_sums parts = t.part;
    base::exact_sum rest = t.sum.error2;
    rest.subtract(parts.clamp);
    rest.subtract(parts.underflow);
    rest.subtract(parts.grid);
    base::exact_sum* largest = &parts.grid;
    if (less(*largest, parts.clamp)) largest = &parts.clamp;
    if (less(*largest, parts.underflow)) largest = &parts.underflow;
    largest->merge(rest);
    return parts;
}

report::value squared_error(const totals& t) {
    if (t.counted() == 0) return {};
    const part_sums parts = balanced_parts(t);
    report::record out;
    out.emplace_back("total", t.sum.error2.value());
    out.emplace_back("clamp", parts.clamp.value());
    out.emplace_back("underflow", parts.underflow.value());
    out.emplace_back("grid", parts.grid.value());
    return out;
}

report::value clamp_error_share(const totals& t) { return share(t, &part_sums::clamp); }
report::value underflow_error_share(const totals& t) { return share(t, &part_sums::underflow); }
report::value grid_error_share(const totals& t) { return share(t, &part_sums::grid); }

}  // namespace mx::metrics
