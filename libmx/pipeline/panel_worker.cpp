// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/panel_worker.hpp"

#include "libmx/pipeline/segment_places.hpp"

namespace mx::pipeline {

using quantize::detail;

void panel_worker::run(const panel& where, const quantize::stored_values& values,
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
        const preparation& how = jobs[j].how;
        same_.clear();
        for (std::size_t k = j; k < jobs.size(); ++k) {
            if (taken_[k] || !(jobs[k].how == how)) continue;
            if (!alike(how, jobs[k].grid, jobs[j].grid)) continue;
            taken_[k] = true;
            same_.push_back(k);
        }
        const quantize::stored_values ready =
            how.nothing() ? values : prepare(how, jobs[j].grid, where, values, prepared_);
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

void panel_worker::run_prepared(const panel& where, const quantize::stored_values& values,
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

void add_histograms(const quantize::segment_place& place, const quantize::details_view& d, int bits,
                    metrics::histogram_tally& to) {
    for (std::size_t b = 0; b < d.blocks; ++b) {
        to.add({d.scale_code[b], d.amax[b], d.x_max[b], d.x_min[b]});
    }
    // Without padding, the codes of all blocks are one run.
    const auto elements = static_cast<std::size_t>(place.elements());
    if (elements == d.blocks * d.stride) return to.add_codes(std::span(d.codes, elements), bits);
    for (std::size_t b = 0; b < d.blocks; ++b) {
        const std::size_t size = quantize::extent_of(place, b).size();
        to.add_codes(std::span(d.codes + b * d.stride, size), bits);
    }
}

}  // namespace

void panel_worker::run_segments(const panel& where, const quantize::stored_values& values,
                                std::uint64_t tensor_id, std::span<const panel_job> jobs,
                                std::span<const std::size_t> alike) {
    if (batch_) return run_batch(where, values, tensor_id, jobs, alike);
    const block::grid& grid = jobs[alike.front()].grid;
    for_each_segment(grid, where, [&](const segment_in_panel& s) {
        const quantize::segment_place place = place_of(s, grid, tensor_id);
        const std::uint64_t at = (s.batch * where.rows + s.row) * values.stride + s.col;
        driver_->load(values.from(at), place, run_);
        for (const std::size_t j : alike) {
            const panel_job& job = jobs[j];
            details_.wanted = wanted_by(job);
            details_.parts = job.into->decompose;
            const block::segment_stats stats = driver_->quantize(*job.params, run_, details_);
            add_segment(s, place, job, stats, quantize::view_of(*job.params, run_, details_),
                        tallies_[j]);
        }
        watch_.end_segment();
    });
}

void panel_worker::run_batch(const panel& where, const quantize::stored_values& values,
                             std::uint64_t tensor_id, std::span<const panel_job> jobs,
                             std::span<const std::size_t> alike) {
    const block::grid& grid = jobs[alike.front()].grid;
    segments_.clear();
    places_.clear();
    recipes_.clear();
    for_each_segment(grid, where, [&](const segment_in_panel& s) {
        segments_.push_back(s);
        places_.push_back(batch_segment_of(s, grid, where, tensor_id));
    });
    for (const std::size_t j : alike) {
        recipes_.push_back({jobs[j].params, wanted_by(jobs[j]), jobs[j].into->decompose});
    }
    const quantize::value_rectangle all{values, where.batches * where.rows, where.cols};
    quantize::run_in_parts(*batch_, all, places_, recipes_, [&](std::size_t s, std::size_t at) {
        for (std::size_t i = 0; i < alike.size(); ++i) {
            const quantize::batch_result r = batch_->result(at, i);
            add_segment(segments_[s], places_[s].place, jobs[alike[i]], *r.stats, r.details,
                        tallies_[alike[i]]);
        }
        watch_.end_segment();
    });
}

void panel_worker::add_segment(const segment_in_panel& s, const quantize::segment_place& place,
                               const panel_job& job, const block::segment_stats& stats,
                               const quantize::details_view& details, tally& to) {
    to.totals.add(stats);
    if (details.codes == nullptr) return;
    if (job.scales != nullptr) {
        watch_.see(*job.scales, job.scales_member, std::span(details.scale_code, details.blocks));
    }
    if (job.into->histograms) {
        add_histograms(place, details, job.params->element.bits, *to.histograms);
    }
    if (job.rows == nullptr) return;
    const std::uint64_t across = place.grid_cols();
    for (std::size_t b = 0; b < details.blocks; ++b) {
        job.rows->put(s.index + b / across * job.grid.cols() + b % across, details.stats[b]);
    }
}

}  // namespace mx::pipeline
