// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/block_survey.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <tuple>

#include "libmx/analysis/open_groups.hpp"
#include "libmx/analysis/totals.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/clamp_zone.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/saturation_zone.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/report/members.hpp"

namespace mx::cluster {

// The properties of a recipe that do not depend on a block.
struct survey_recipe {
    explicit survey_recipe(const codec::recipe& r)
        : judge(engine::block_judge::of(r)),
          zone(codec::clamp_zone_of(r)),
          has_offset(r.offset != codec::offset_kind::none),
          empty(analysis::empty_totals(r)) {}

    std::optional<engine::block_judge> judge;
    codec::clamp_zone zone;
    bool has_offset;
    metrics::totals empty;

    // Vector kernels leave the full statistics of blocks to the reference. If extremes determine
    // which blocks need them, only those blocks are examined.
    bool magnitudes_decide() const { return judge && judge->magnitudes_decide(); }
};

namespace {

using report::share;

// Tallies in use at a time: each takes tens of kilobytes.
constexpr std::size_t jobs_at_once = 256;

}  // namespace

// A quantized block.
struct surveyed_block {
    std::uint64_t index;
    std::span<const float> x;
    std::span<const std::uint8_t> codes;
    const block::block_stats& stats;
};

double number_of(std::uint32_t bits) { return static_cast<double>(base::float_from_bits(bits)); }

bool has_maximum(std::uint32_t amax) { return amax != 0 && amax < base::f32_infinity; }

// The mantissa in [1, 2).
double mantissa_of(std::uint32_t bits) {
    return static_cast<double>(base::decompose(bits).significand) * 0x1p-23;
}

std::optional<defect> defect_of(const block::block_stats& s) {
    // A single magnitude that is preserved up to the rounding of the scale has no loss.
    const bool back = s.x_min == s.x_max && s.sum.error2 <= 0x1p-40 * s.sum.x2;
    if (s.is.saturated && s.count.overflow > 0 && !back) return defect::saturation;
    if (s.is.dead) return defect::death;
    // Equal magnitudes have no differences to lose, and a collapse without an error is not a
    // defect.
    const bool unequal = s.x_min != s.x_max && s.sum.error2 > 0;
    if (s.is.collapsed && unequal) return defect::collapse;
    return std::nullopt;
}

// Larger losses first; the index decides between equal losses, so that the result does not depend
// on the order of blocks.
bool worse(const bad_block& a, const bad_block& b) {
    return std::tie(b.loss, a.index) < std::tie(a.loss, b.index);
}

// The magnitude that the first non-zero element became; nullopt beyond float32.
std::optional<double> value_of(const surveyed_block& b, const codec::block_params& params) {
    std::size_t i = 0;
    while (b.x[i] == 0) ++i;
    float value[1];
    codec::dequantize_block(params, b.stats.scale, b.stats.offset, b.codes.subspan(i, 1), value);
    if (!std::isfinite(value[0])) return std::nullopt;
    return std::abs(static_cast<double>(value[0]));
}

// Counts the blocks of one tensor under one recipe. Adding and merging do not depend on order.
class block_tally {
  public:
    // Adds a block without a defect according to its extremes. Returns false if they do not decide,
    // so that the whole block must be examined. Only for recipes with a judge whose
    // magnitudes_decide().
    bool add_sound(const engine::quantized_segment& s, const codec::block_results& d, std::size_t b,
                   const survey_recipe& recipe) {
        const std::uint32_t least = d.x_min[b], largest = d.x_max[b];
        // One magnitude may be that of a single element; two magnitudes need at least two elements.
        if (!has_maximum(largest) || d.scale_code[b] == format::e8m0_nan || least == largest ||
            recipe.judge->one_code(least, largest, d.scale_code[b])) {
            return false;
        }
        place(d.amax[b], least, largest, recipe);
        if (!nearest_ || recipe.judge->may_be_nearer(least, d.scale_code[b], nearest_->nearness)) {
            keep(near_block{s.index_of(b), number_of(least), number_of(largest),
                            recipe.judge->nearness({least, 0, largest})});
        }
        return true;
    }

    void add(const surveyed_block& b, const survey_recipe& recipe,
             const codec::block_params& params) {
        const block::block_stats& s = b.stats;
        if (s.count.nan + s.count.inf + s.count.poisoned != 0) return;
        place(s.amax, s.x_min, s.x_max, recipe);
        if (s.is.eligible) judge(b, recipe, params);
    }

    void add(const block::segment_stats& s) { totals_.add(s); }

    void merge(const block_tally& other) {
        totals_.merge(other.totals_);
        spread_.merge(other.spread_);
        with_maximum_ += other.with_maximum_;
        in_zone_ += other.in_zone_;
        overflowing_ += other.overflowing_;
        saturating_ += other.saturating_;
        for (std::size_t i = 0; i < defect_count; ++i) defective_[i] += other.defective_[i];
        saturated_gain_.merge(other.saturated_gain_);
        for (const bad_block& b : other.worst_) keep(b);
        if (other.nearest_) keep(*other.nearest_);
    }

    // Exchanges the numbers that merge() adds.
    void serialize(base::archive& with) {
        totals_.serialize(with);
        spread_.serialize(with);
        for (std::uint64_t* n : {&with_maximum_, &in_zone_, &overflowing_, &saturating_}) {
            with.add(*n);
        }
        for (std::uint64_t& n : defective_) with.add(n);
        with.add(saturated_gain_);
        std::uint64_t bad = worst_.size(), near = nearest_ ? 1 : 0;
        with.set(bad);
        with.set(near);
        const std::vector<bad_block> worst = with.reads() ? std::vector<bad_block>() : worst_;
        for (std::uint64_t i = 0; i < bad; ++i) {
            bad_block b = with.reads() ? bad_block() : worst[i];
            serialize(b, with);
            if (with.reads()) keep(b);
        }
        if (near == 0) return;
        near_block b = with.reads() ? near_block() : *nearest_;
        with.set(b.index);
        for (double* x : {&b.least, &b.largest, &b.nearness}) with.set(*x);
        if (with.reads()) keep(b);
    }

    // The survey, without tensor and recipe.
    block_survey finish(const survey_recipe& recipe) const {
        metrics::totals t = recipe.empty;
        t.merge(totals_);
        t.distribution = &spread_;
        block_survey s;
        s.blocks = t.block.blocks;
        s.eligible = t.block.eligible;
        s.saturated = t.block.saturated;
        std::ranges::copy(defective_, std::begin(s.defective));
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
        s.rmse = report::to_value(figures.rmse);
        s.nrmse = report::to_value(figures.nrmse);
        s.without_values = std::isnan(figures.rmse) || t.block.zero == t.block.blocks;
        s.saturated_block_rate = report::to_value(figures.saturated_block_rate);
        s.collapsed_block_rate = report::to_value(figures.collapsed_block_rate);
        s.bits_per_element = report::to_value(figures.bits_per_element);
        s.worst = worst_;
        s.nearest = nearest_;
        return s;
    }

  private:
    // The position of the block's maximum, and the range of its magnitudes.
    void place(std::uint32_t amax, std::uint32_t least, std::uint32_t largest,
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

    void judge(const surveyed_block& b, const survey_recipe& recipe,
               const codec::block_params& params) {
        const block::block_stats& s = b.stats;
        if (recipe.judge) {
            const engine::block_extremes e = recipe.judge->signs_matter()
                                                 ? engine::extremes_of(b.x)
                                                 : engine::block_extremes{s.x_min, 0, s.x_max};
            const engine::block_verdict v = recipe.judge->judge(e);
            overflowing_ += v.overflows ? 1u : 0u;
            saturating_ += v.saturates ? 1u : 0u;
            const double nearness = v.saturates ? 1.0 : recipe.judge->nearness(e);
            if (!s.is.saturated) {
                keep(near_block{b.index, number_of(s.x_min), number_of(s.x_max), nearness});
            }
        }
        const double gain = s.sum.x2 > 0 ? s.sum.xd / s.sum.x2 : 0.0;
        if (s.is.saturated) saturated_gain_.add(gain);
        const std::optional<defect> what = defect_of(s);
        if (!what) return;
        ++defective_[static_cast<std::size_t>(*what)];
        bad_block bad{b.index, *what, number_of(s.x_min), number_of(s.x_max), std::nullopt,
                      gain,    0};
        if (!recipe.has_offset) bad.becomes = value_of(b, params);
        bad.loss = s.sum.x2 > 0 ? s.sum.error2 / s.sum.x2 : 0.0;
        keep(bad);
    }

    static void serialize(bad_block& b, base::archive& with) {
        auto what = static_cast<std::uint64_t>(b.what);
        std::uint64_t becomes = b.becomes ? 1 : 0;
        double value = b.becomes.value_or(0);
        for (std::uint64_t* n : {&b.index, &what, &becomes}) with.set(*n);
        for (double* x : {&b.least, &b.largest, &value, &b.gain, &b.loss}) with.set(*x);
        b.what = static_cast<defect>(std::min<std::uint64_t>(what, defect_count - 1));
        b.becomes = becomes != 0 ? std::optional(value) : std::nullopt;
    }

    void keep(const bad_block& b) {
        if (worst_.size() == worst_blocks && !worse(b, worst_.back())) return;
        worst_.insert(std::ranges::upper_bound(worst_, b, worse), b);
        if (worst_.size() > worst_blocks) worst_.pop_back();
    }

    void keep(const near_block& b) {
        if (!nearest_ ||
            std::tie(nearest_->nearness, b.index) < std::tie(b.nearness, nearest_->index)) {
            nearest_ = b;
        }
    }

    metrics::totals totals_;
    metrics::histograms spread_;
    std::uint64_t with_maximum_ = 0, in_zone_ = 0;
    std::uint64_t overflowing_ = 0, saturating_ = 0;  // by the closed forms
    std::uint64_t defective_[defect_count] = {};
    base::exact_sum saturated_gain_;
    std::vector<bad_block> worst_;
    std::optional<near_block> nearest_;
};

struct shared_survey {
    std::mutex guard;
    block_tally tally;
};

// The blocks of groups. A group under a recipe that fits none of its tensors has no survey.
struct grouped_surveys {
    struct sums {
        block_tally tally;
        bool any = false;
    };

    grouped_surveys(analysis::grouping of, std::size_t recipes)
        : open(std::move(of), recipes), surveys(open.size()) {}

    void close(std::size_t group, const std::vector<sums>& by_recipe,
               std::span<const survey_recipe> recipes) {
        for (std::size_t r = 0; r < recipes.size(); ++r) {
            if (!by_recipe[r].any) continue;
            block_survey& s = surveys[group].emplace_back(by_recipe[r].tally.finish(recipes[r]));
            s.tensor = group;
            s.recipe = r;
        }
    }

    analysis::open_groups<sums> open;
    std::vector<std::vector<block_survey>> surveys;  // by group
};

namespace {

class panel_survey final : public engine::panel_visitor {
  public:
    panel_survey(std::span<const survey_recipe> recipes,
                 std::span<const std::unique_ptr<shared_survey>> to, const engine::run_panel& p)
        : recipes_(recipes), to_(to), panel_(p), tallies_(p.jobs.size()) {}

    void segment(const engine::quantized_segment& s,
                 std::span<const std::size_t> members) override {
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (panel_.counted[members[i]] == 0) tallies_[members[i]].add(*s.by_recipe[i].stats);
            const engine::run_job& j = panel_.job(members[i]);
            const codec::block_params* params = j.params[0].get();
            if (params->outer_areas) {
                of_area_ = *params;
                of_area_.tensor = s.by_recipe[i].outer;
                params = &of_area_;
            }
            add_blocks(s, s.by_recipe[i].of_blocks, recipes_[j.recipe], *params,
                       tallies_[members[i]]);
        }
    }

    void end() override {
        for (std::size_t i = 0; i < tallies_.size(); ++i) {
            shared_survey& all = *to_[panel_.jobs[i]];
            const std::lock_guard lock(all.guard);
            all.tally.merge(tallies_[i]);
        }
    }

  private:
    void add_blocks(const engine::quantized_segment& s, const codec::block_results& d,
                    const survey_recipe& r, const codec::block_params& params, block_tally& to) {
        const bool quick = r.magnitudes_decide();
        for (std::size_t b = 0; b < d.blocks; ++b) {
            if (quick && to.add_sound(s, d, b, r)) continue;
            const std::uint64_t index = s.index_of(b);
            const codec::block_extent extent = codec::extent_of(s.place, b);
            const std::span x(d.inputs + b * d.stride, extent.size());
            if (!quick) {
                const std::span codes(d.codes + b * d.stride, extent.size());
                to.add({index, x, codes, d.stats[b]}, r, params);
                continue;
            }
            // The reference, for this block only: a backend returns all statistics for every block
            // of a segment or for none, and few blocks get here.
            codes_.resize(extent.size());
            const block::block_stats stats =
                codec::measure_block(params, x, codec::place_of(s.place, extent), codes_);
            to.add({index, x, codes_, stats}, r, params);
        }
    }

    std::span<const survey_recipe> recipes_;
    std::span<const std::unique_ptr<shared_survey>> to_;  // by job of the batch
    engine::run_panel panel_;
    std::vector<block_tally> tallies_;  // by job of the panel
    std::vector<std::uint8_t> codes_;
    codec::block_params of_area_{};
};

}  // namespace

block_surveyor::block_surveyor(const engine::run_request& request,
                               std::function<void(block_survey)> take)
    : take_(std::move(take)) {
    for (const codec::recipe& r : request.recipes) recipes_.emplace_back(r);
}

block_surveyor::block_surveyor(const engine::run_request& request,
                               std::function<void(block_survey)> take, analysis::grouping groups)
    : block_surveyor(request, std::move(take)) {
    groups_ = std::make_unique<grouped_surveys>(std::move(groups), recipes_.size());
}

block_surveyor::~block_surveyor() = default;

std::size_t block_surveyor::tensors_at_once() const {
    return jobs_at_once / std::max<std::size_t>(1, recipes_.size());
}

codec::recipe_request block_surveyor::requested(const engine::run_job& j) const {
    const bool quick = recipes_[j.recipe].magnitudes_decide();
    return {nullptr, quick ? codec::detail::codes : codec::detail::stats, false, false, true};
}

std::optional<codec::recipe_request> block_surveyor::beside_counts(const engine::run_job& j) const {
    const bool quick = recipes_[j.recipe].magnitudes_decide();
    return codec::recipe_request{.wanted = quick ? codec::detail::scales : codec::detail::stats,
                                 .inputs = true,
                                 .sums = false};
}

void block_surveyor::total(const engine::run_batch&, std::size_t job,
                           const block::segment_stats& s) {
    const std::lock_guard lock(tallies_[job]->guard);
    tallies_[job]->tally.add(s);
}

void block_surveyor::begin(const engine::run_batch& b) {
    tallies_.clear();
    for (std::size_t j = 0; j < b.jobs.size(); ++j) {
        tallies_.push_back(std::make_unique<shared_survey>());
    }
}

std::unique_ptr<engine::panel_visitor> block_surveyor::visit(const engine::run_panel& p) {
    return std::make_unique<panel_survey>(recipes_, tallies_, p);
}

void block_surveyor::serialize_job(const engine::run_batch&, std::size_t job, base::archive& with) {
    tallies_[job]->tally.serialize(with);
}

void block_surveyor::end(const engine::run_batch& b) {
    for (std::size_t j = 0; j < b.jobs.size(); ++j) {
        const engine::run_job& job = b.jobs[j];
        const block_tally& tally = tallies_[j]->tally;
        block_survey s = tally.finish(recipes_[job.recipe]);
        s.tensor = job.tensor;
        s.recipe = job.recipe;
        take_(std::move(s));
        if (!groups_) continue;
        grouped_surveys::sums& sums = groups_->open.sums_of(job.tensor, job.recipe);
        sums.tally.merge(tally);
        sums.any = true;
    }
    for (std::size_t t = 0; groups_ && t < b.tensors.size(); ++t) {
        groups_->open.complete(b.first + t, [this](std::size_t group, auto sums) {
            groups_->close(group, sums, recipes_);
        });
    }
}

std::vector<block_survey> block_surveyor::take_groups() {
    groups_->open.close_all(
        [this](std::size_t group, auto sums) { groups_->close(group, sums, recipes_); });
    std::vector<block_survey> all;
    for (std::vector<block_survey>& of_group : groups_->surveys) {
        std::ranges::move(of_group, std::back_inserter(all));
    }
    return all;
}

std::vector<block_survey> survey_blocks(const std::vector<engine::tensor_ref>& tensors,
                                        const engine::run_request& request,
                                        const engine::run_control& control) {
    std::vector<block_survey> surveys;
    block_surveyor surveyor(request, [&](block_survey s) { surveys.push_back(std::move(s)); });
    engine::run(tensors, request, surveyor, control);
    return surveys;
}

}  // namespace mx::cluster
