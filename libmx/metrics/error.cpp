// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/error.hpp"

#include <cmath>

#include "libmx/base/bits.hpp"

namespace mx::metrics {
namespace {

double count_of(const totals& t) { return static_cast<double>(t.counted()); }
report::value undefined() { return {}; }

}  // namespace

report::value rmse(const totals& t) {
    if (t.counted() == 0) return undefined();
    return std::sqrt(t.sum.error2.value() / count_of(t));
}

report::value nrmse(const totals& t) {
    const double x2 = t.sum.x2.value();
    if (x2 == 0) return undefined();
    return std::sqrt(t.sum.error2.value() / x2);
}

report::value sqnr_db(const totals& t) {
    const double x2 = t.sum.x2.value();
    const double error2 = t.sum.error2.value();
    if (x2 == 0 || error2 == 0) return undefined();
    return -10.0 * std::log10(error2 / x2);
}

report::value rms(const totals& t) {
    if (t.counted() == 0) return undefined();
    return std::sqrt(t.sum.x2.value() / count_of(t));
}

report::value crest_factor(const totals& t) {
    const double x2 = t.sum.x2.value();
    if (x2 == 0) return undefined();
    return static_cast<double>(base::float_from_bits(t.max_x)) / std::sqrt(x2 / count_of(t));
}

report::value exact(const totals& t) {
    if (t.counted() == 0) return undefined();
    return t.max_error == 0;
}

report::value max_abs_error(const totals& t) {
    if (t.counted() == 0) return undefined();
    return t.max_error;
}

report::value mean_error(const totals& t) {
    if (t.counted() == 0) return undefined();
    return t.sum.error.value() / count_of(t);
}

report::value gain(const totals& t) {
    const double x2 = t.sum.x2.value();
    if (x2 == 0) return undefined();
    return t.sum.xd.value() / x2;
}

report::value cosine(const totals& t) {
    const double x2 = t.sum.x2.value();
    const double d2 = t.sum.d2.value();
    if (x2 == 0 || d2 == 0) return undefined();
    return t.sum.xd.value() / std::sqrt(x2 * d2);
}

}  // namespace mx::metrics
