// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/totals.hpp"

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/codec/clamp_zone.hpp"

namespace mx::analysis {
namespace {

// Jobs worked on at a time: what they hold (kilobytes of exact sums, tens of kilobytes with
// histograms) must not grow with the number of tensors.
constexpr std::size_t jobs_at_once = 4096;
constexpr std::size_t histogram_jobs_at_once = 256;

void add_histograms(const codec::segment_place& place, const codec::block_results& d, int bits,
                    metrics::histogram_tally& to) {
    for (std::size_t b = 0; b < d.blocks; ++b) {
        to.add({d.scale_code[b], d.amax[b], d.x_max[b], d.x_min[b]});
    }
    // Without padding, the codes of all blocks are one run.
    const auto elements = static_cast<std::size_t>(place.elements());
    if (elements == d.blocks * d.stride) return to.add_codes(std::span(d.codes, elements), bits);
    for (std::size_t b = 0; b < d.blocks; ++b) {
        const std::size_t size = codec::extent_of(place, b).size();
        to.add_codes(std::span(d.codes + b * d.stride, size), bits);
    }
}

class panel_totals final : public engine::panel_visitor {
  public:
    panel_totals(const engine::run_panel& p, std::span<const std::unique_ptr<shared_totals>> sums)
        : panel_(p), tallies_(p.jobs.size()) {
        for (std::size_t i = 0; i < tallies_.size(); ++i) {
            tallies_[i].to = sums[p.jobs[i]].get();
            if (tallies_[i].to->histograms) {
                tallies_[i].histograms = std::make_unique<metrics::histogram_tally>();
            }
        }
    }

    void segment(const engine::quantized_segment& s,
                 std::span<const std::size_t> members) override {
        for (std::size_t i = 0; i < members.size(); ++i) {
            tally& t = tallies_[members[i]];
            if (panel_.counted[members[i]] == 0) t.totals.add(*s.by_recipe[i].stats);
            const codec::block_params& p = *panel_.job(members[i]).params[s.model];
            if (p.outer_areas) t.totals.add_outer(s.by_recipe[i].outer.decode);
            if (!t.histograms) continue;
            const int bits = panel_.job(members[i]).params[s.model]->element.bits;
            add_histograms(s.place, s.by_recipe[i].of_blocks, bits, *t.histograms);
        }
    }

    void end() override {
        for (tally& t : tallies_) {
            const std::lock_guard lock(t.to->guard);
            t.to->totals.merge(t.totals);
            if (t.histograms) t.histograms->flush(*t.to->histograms);
        }
    }

  private:
    struct tally {
        shared_totals* to = nullptr;
        metrics::totals totals;
        std::unique_ptr<metrics::histogram_tally> histograms;
    };
    engine::run_panel panel_;
    std::vector<tally> tallies_;  // by job of the panel
};

}  // namespace

metrics::totals empty_totals(const codec::recipe& r) {
    metrics::totals t;
    t.has_subnormals = r.element->has_subnormals();
    t.foreign = r.by->id != codec::dialect_id::ocp;
    t.element_bits = r.element->bits();
    t.bits_per_block = codec::bits_per_block(r);
    t.has_blocks = codec::has_blocks(r);
    const codec::clamp_zone zone = codec::clamp_zone_of(r);
    t.clamp_from = zone.from;
    t.clamp_to = zone.to;
    return t;
}

totals_visitor::totals_visitor(const engine::run_request& request, bool histograms, bool parts)
    : variants_(request.recipes.size() * request.factors.size()),
      histograms_(histograms),
      parts_(parts) {
    for (const codec::recipe& r : request.recipes) empty_.push_back(empty_totals(r));
}

std::size_t totals_visitor::tensors_at_once() const {
    return (histograms_ ? histogram_jobs_at_once : jobs_at_once) /
           std::max<std::size_t>(1, variants_);
}

codec::recipe_request totals_visitor::requested(const engine::run_job&) const {
    return {nullptr, histograms_ ? codec::detail::codes : codec::detail::none, parts_};
}

std::optional<codec::recipe_request> totals_visitor::beside_counts(const engine::run_job&) const {
    return codec::recipe_request{.wanted = histograms_ ? codec::detail::codes : codec::detail::none,
                                 .sums = false};
}

void totals_visitor::begin(const engine::run_batch& b) {
    sums_.clear();
    for (const engine::run_job& j : b.jobs) {
        sums_.push_back(std::make_unique<shared_totals>());
        shared_totals& s = *sums_.back();
        s.totals = empty_[j.recipe];
        if (histograms_ && s.totals.has_blocks)
            s.histograms = std::make_unique<metrics::histograms>();
        s.totals.distribution = s.histograms.get();
    }
}

void totals_visitor::serialize_job(const engine::run_batch&, std::size_t job, base::archive& with) {
    shared_totals& s = *sums_[job];
    s.totals.serialize(with);
    // What parts were asked for, of which the whole may use less.
    std::uint64_t histograms = histograms_ ? 1 : 0, parts = parts_ ? 1 : 0;
    with.set(histograms);
    with.set(parts);
    if (histograms < (histograms_ ? 1u : 0u) || parts < (parts_ ? 1u : 0u)) {
        throw base::error(base::error_kind::input, "a part was asked for less than the whole");
    }
    if (histograms == 0) return;
    if (s.histograms) return s.histograms->serialize(with);
    const auto unused = std::make_unique<metrics::histograms>();
    unused->serialize(with);
}

std::unique_ptr<engine::panel_visitor> totals_visitor::visit(const engine::run_panel& p) {
    return std::make_unique<panel_totals>(p, sums_);
}

void totals_visitor::total(const engine::run_batch&, std::size_t job,
                           const block::segment_stats& s) {
    const std::lock_guard lock(sums_[job]->guard);
    sums_[job]->totals.add(s);
}

}  // namespace mx::analysis
