// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/block_tally.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "libmx/metrics/metrics.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/report/members.hpp"

namespace mx::cluster {
namespace {

using report::share;

double number_of(std::uint32_t bits) { return static_cast<double>(base::float_from_bits(bits)); }

bool has_maximum(std::uint32_t amax) { return amax != 0 && amax < base::f32_infinity; }

// The mantissa in [1, 2).
double mantissa_of(std::uint32_t bits) {
    return static_cast<double>(base::decompose(bits).significand) * 0x1p-23;
}

std::optional<ailment> ailment_of(const block::block_stats& s) {
    if (s.is.saturated && s.count.overflow > 0) return ailment::saturation;
    if (s.is.dead) return ailment::death;
    // Equal magnitudes have nothing to lose, and a collapse without an error is none.
    const bool unequal = s.x_min != s.x_max && s.sum.error2 > 0;
    if (s.is.collapsed && unequal) return ailment::collapse;
    return std::nullopt;
}

// Larger losses first; the index decides between equal ones, so that the choice has no order.
bool worse(const bad_block& a, const bad_block& b) {
    return std::tie(b.loss, a.index) < std::tie(a.loss, b.index);
}

// The magnitude that the first non-zero element became; none beyond float32.
std::optional<double> value_of(const surveyed_block& b, const codec::block_params& params) {
    std::size_t i = 0;
    while (b.x[i] == 0) ++i;
    float value[1];
    codec::dequantize_block(params, b.stats.scale, b.stats.offset, b.codes.subspan(i, 1), value);
    if (!std::isfinite(value[0])) return std::nullopt;
    return std::abs(static_cast<double>(value[0]));
}

}  // namespace

survey_recipe::survey_recipe(const codec::recipe& r)
    : judge(codec::block_judge::of(r)),
      zone(codec::clamp_zone_of(r)),
      has_offset(r.offset != codec::offset_kind::none) {}

void block_tally::add(const surveyed_block& b, const survey_recipe& recipe,
                      const codec::block_params& params) {
    const block::block_stats& s = b.stats;
    if (s.count.nan + s.count.inf + s.count.poisoned != 0) return;
    place(s.amax, s.x_min, s.x_max, recipe);
    if (s.is.eligible) judge(b, recipe, params);
}

bool block_tally::add_sound(const scaled_block& b, const survey_recipe& recipe) {
    // One magnitude may be one element; more than one are two elements or more.
    if (!has_maximum(b.largest) || b.scale_code == format::e8m0_nan || b.least == b.largest ||
        recipe.judge->one_code(b.least, b.largest, b.scale_code)) {
        return false;
    }
    place(b.amax, b.least, b.largest, recipe);
    keep(near_block{b.index, number_of(b.least), number_of(b.largest),
                    recipe.judge->nearness({b.least, 0, b.largest})});
    return true;
}

// Where the block's maximum lies, and how far apart its magnitudes.
void block_tally::place(std::uint32_t amax, std::uint32_t least, std::uint32_t largest,
                        const survey_recipe& recipe) {
    if (has_maximum(amax)) {
        const double mantissa = mantissa_of(amax);
        ++with_maximum_;
        in_zone_ += recipe.zone.from < mantissa && mantissa < recipe.zone.to ? 1u : 0u;
    }
    if (has_maximum(largest)) {
        ++spread_.spread[static_cast<std::size_t>(metrics::spread_bin(least, largest))];
    }
}

void block_tally::judge(const surveyed_block& b, const survey_recipe& recipe,
                        const codec::block_params& params) {
    const block::block_stats& s = b.stats;
    if (recipe.judge) {
        const codec::block_extremes e = recipe.judge->signs_matter()
                                            ? codec::extremes_of(b.x)
                                            : codec::block_extremes{s.x_min, 0, s.x_max};
        const codec::block_verdict v = recipe.judge->judge(e);
        overflowing_ += v.overflows ? 1u : 0u;
        saturating_ += v.saturates ? 1u : 0u;
        const double nearness = v.saturates ? 1.0 : recipe.judge->nearness(e);
        if (!s.is.saturated) {
            keep(near_block{b.index, number_of(s.x_min), number_of(s.x_max), nearness});
        }
    }
    const double gain = s.sum.x2 > 0 ? s.sum.xd / s.sum.x2 : 0.0;
    if (s.is.saturated) saturated_gain_.add(gain);
    const std::optional<ailment> what = ailment_of(s);
    if (!what) return;
    ++ailing_[static_cast<std::size_t>(*what)];
    bad_block bad{b.index, *what, number_of(s.x_min), number_of(s.x_max), std::nullopt, gain, 0};
    if (!recipe.has_offset) bad.becomes = value_of(b, params);
    bad.loss = s.sum.x2 > 0 ? s.sum.error2 / s.sum.x2 : 0.0;
    keep(bad);
}

void block_tally::keep(const bad_block& b) {
    if (worst_.size() == worst_blocks && !worse(b, worst_.back())) return;
    worst_.insert(std::upper_bound(worst_.begin(), worst_.end(), b, worse), b);
    if (worst_.size() > worst_blocks) worst_.pop_back();
}

void block_tally::keep(const near_block& b) {
    if (!nearest_ ||
        std::tie(nearest_->nearness, b.index) < std::tie(b.nearness, nearest_->index)) {
        nearest_ = b;
    }
}

void block_tally::merge(const block_tally& other) {
    totals_.merge(other.totals_);
    spread_.merge(other.spread_);
    with_maximum_ += other.with_maximum_;
    in_zone_ += other.in_zone_;
    overflowing_ += other.overflowing_;
    saturating_ += other.saturating_;
    for (std::size_t i = 0; i < ailment_count; ++i) ailing_[i] += other.ailing_[i];
    saturated_gain_.merge(other.saturated_gain_);
    for (const bad_block& b : other.worst_) keep(b);
    if (other.nearest_) keep(*other.nearest_);
}

block_survey block_tally::finish(const survey_recipe& recipe, metrics::totals facts) const {
    metrics::totals& t = facts;
    t.merge(totals_);
    t.distribution = &spread_;
    block_survey s;
    s.blocks = t.block.blocks;
    s.eligible = t.block.eligible;
    s.saturated = t.block.saturated;
    std::copy(std::begin(ailing_), std::end(ailing_), std::begin(s.ailing));
    s.clamp_zone_block_rate = share(in_zone_, with_maximum_);
    if (recipe.judge) {
        s.certain_overflow_block_rate = share(overflowing_, s.eligible);
        s.certain_saturation_block_rate = share(saturating_, s.eligible);
    }
    if (s.saturated > 0) {
        s.saturated_block_gain = saturated_gain_.value() / static_cast<double>(s.saturated);
    }
    const report::value distribution = metrics::block_spread(t);
    const report::value* quantiles =
        report::find(std::get<report::record>(distribution), "quantiles");
    s.spread = std::get<report::record>(*quantiles);
    const metrics::row figures = metrics::row_of(t);
    const auto defined = [](double x) { return std::isnan(x) ? report::value() : x; };
    s.rmse = defined(figures.rmse);
    s.saturated_block_rate = defined(figures.saturated_block_rate);
    s.bits_per_element = defined(figures.bits_per_element);
    s.worst = worst_;
    s.nearest = nearest_;
    return s;
}

}  // namespace mx::cluster
