// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/row.hpp"

#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/decibels.hpp"

namespace mx::metrics {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

double ratio(double part, double whole) { return whole == 0 ? undefined : part / whole; }

}  // namespace

row row_of(const totals& t) {
    const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
    const double counted = number(t.counted());
    const auto share = [&](std::uint64_t n) { return ratio(number(n), counted); };
    const auto of_eligible = [&](std::uint64_t n) {
        return ratio(number(n), number(t.block.eligible));
    };
    const bool any = t.counted() != 0;
    const double error2 = t.sum.error2().value();
    const double x2 = t.sum.x2.value();
    const double d2 = t.sum.d2.value();
    const double xd = t.sum.xd.value();
    row r{};
    r.rmse = any ? std::sqrt(error2 / counted) : undefined;
    r.nrmse = x2 == 0 ? undefined : std::sqrt(error2 / x2);
    r.sqnr_db = x2 == 0 || error2 == 0 ? undefined : base::decibels_of_power(error2 / x2);
    r.rms = any ? std::sqrt(x2 / counted) : undefined;
    r.spread_error = t.deviation > 0 ? r.rmse / t.deviation : undefined;
    r.crest_factor =
        x2 == 0 ? undefined
                : static_cast<double>(base::float_from_bits(t.max_x)) / std::sqrt(x2 / counted);
    r.exact = any ? (t.max_error == 0 ? 1.0 : 0.0) : undefined;
    r.max_abs_error = any ? t.max_error : undefined;
    r.overflow_rate = share(t.count.overflow);
    r.clamp_rate = share(t.count.clamp);
    r.top_code_rate = share(t.count.top_code);
    r.underflow_rate = share(t.count.underflow);
    r.subnormal_rate = t.has_subnormals ? share(t.count.subnormal) : undefined;
    r.dequant_overflow = t.foreign ? number(t.count.dequant_overflow) : undefined;
    r.eligible_blocks = t.has_blocks ? number(t.block.eligible) : undefined;
    r.collapsed_block_rate = of_eligible(t.block.collapsed);
    r.saturated_block_rate = of_eligible(t.block.saturated);
    r.dead_block_rate = of_eligible(t.block.dead);
    r.zero_blocks = t.has_blocks ? number(t.block.zero) : undefined;
    r.mean_error = any ? t.sum.error().value() / counted : undefined;
    r.gain = ratio(xd, x2);
    r.cosine = x2 == 0 || d2 == 0 ? undefined : xd / std::sqrt(x2 * d2);
    r.bits_per_element = t.count.elements == 0
                             ? undefined
                             : static_cast<double>(t.element_bits) +
                                   static_cast<double>(t.bits_per_block) * number(t.block.blocks) /
                                       number(t.count.elements);
    return r;
}

}  // namespace mx::metrics
