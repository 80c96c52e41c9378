// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/panel_worker.hpp"

namespace mx::analysis {

using codec::detail;

void panel_worker::run(const engine::panel& where, const codec::stored_values& values,
                       std::uint64_t tensor_id, std::span<const panel_job> jobs) {
    if (tallies_.size() < jobs.size()) tallies_.resize(jobs.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        tally& t = tallies_[j];
        t.totals = {};
        if (jobs[j].into->histograms && !t.histograms) {
            t.histograms = std::make_unique<metrics::histogram_tally>();
        }
    }
    // The panel is prepared once for all jobs that prepare it in the same way.
    taken_.assign(jobs.size(), false);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (taken_[j]) continue;
        const engine::preparation& how = jobs[j].how;
        same_.clear();
        for (std::size_t k = j; k < jobs.size(); ++k) {
            if (taken_[k] || !(jobs[k].how == how)) continue;
            if (!engine::alike(how, jobs[k].grid, jobs[j].grid)) continue;
            taken_[k] = true;
            same_.push_back(k);
        }
        const codec::stored_values ready =
            how.nothing() ? values : engine::prepare(how, jobs[j].grid, where, values, prepared_);
        run_prepared(where, ready, tensor_id, jobs, same_);
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        shared_totals& to = *jobs[j].into;
        const std::lock_guard lock(to.guard);
        to.totals.merge(tallies_[j].totals);
        if (to.histograms) tallies_[j].histograms->flush(*to.histograms);
    }
    watch_.flush();
}

void panel_worker::run_prepared(const engine::panel& where, const codec::stored_values& values,
                                std::uint64_t tensor_id, std::span<const panel_job> jobs,
                                std::span<const std::size_t> same) {
    // Jobs with one and the same grid share the values of a segment while they are in the cache.
    laid_.assign(same.size(), false);
    for (std::size_t i = 0; i < same.size(); ++i) {
        if (laid_[i]) continue;
        alike_.clear();
        for (std::size_t k = i; k < same.size(); ++k) {
            if (laid_[k] || !(jobs[same[k]].grid == jobs[same[i]].grid)) continue;
            laid_[k] = true;
            alike_.push_back(same[k]);
        }
        run_segments(where, values, tensor_id, jobs, alike_);
    }
}

namespace {

// What a job wants of every block.
detail wanted_by(const panel_job& job) {
    const bool codes = job.into->histograms != nullptr || job.scales != nullptr;
    return job.rows != nullptr ? detail::stats : codes ? detail::codes : detail::none;
}

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

}  // namespace

void panel_worker::run_segments(const engine::panel& where, const codec::stored_values& values,
                                std::uint64_t tensor_id, std::span<const panel_job> jobs,
                                std::span<const std::size_t> alike) {
    recipes_.clear();
    for (const std::size_t j : alike) {
        recipes_.push_back({jobs[j].params, wanted_by(jobs[j]), jobs[j].into->decompose});
    }
    quantizer_.run(jobs[alike.front()].grid, where, values, tensor_id, recipes_,
                   [&](const engine::quantized_segment& s) {
                       for (std::size_t i = 0; i < alike.size(); ++i) {
                           add_segment(s, jobs[alike[i]], s.by_recipe[i], tallies_[alike[i]]);
                       }
                       watch_.end_segment();
                   });
}

void panel_worker::add_segment(const engine::quantized_segment& s, const panel_job& job,
                               const codec::segment_result& result, tally& to) {
    to.totals.add(*result.stats);
    const codec::block_results& blocks = result.of_blocks;
    if (blocks.codes == nullptr) return;
    if (job.scales != nullptr) {
        watch_.see(*job.scales, job.scales_member, std::span(blocks.scale_code, blocks.blocks));
    }
    if (job.into->histograms) {
        add_histograms(s.place, blocks, job.params->element.bits, *to.histograms);
    }
    if (job.rows == nullptr) return;
    for (std::size_t b = 0; b < blocks.blocks; ++b) job.rows->put(s.index_of(b), blocks.stats[b]);
}

}  // namespace mx::analysis
