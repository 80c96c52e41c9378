// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/panel_worker.hpp"

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

void panel_worker::run_segments(const panel& where, const quantize::stored_values& values,
                                std::uint64_t tensor_id, std::span<const panel_job> jobs,
                                std::span<const std::size_t> alike) {
    const block::grid& grid = jobs[alike.front()].grid;
    for_each_segment(grid, where, [&](const segment_in_panel& s) {
        const quantize::segment_place place{tensor_id, s.first,         grid.over.cols, s.rows,
                                            s.cols,    grid.block_rows, grid.block_cols};
        const std::uint64_t at = (s.batch * where.rows + s.row) * values.stride + s.col;
        driver_->load(values.from(at), place, run_);
        for (const std::size_t j : alike) run_segment(s.index, grid, jobs[j], tallies_[j]);
        watch_.end_segment();
    });
}

void panel_worker::run_segment(std::uint64_t first_block, const block::grid& grid,
                               const panel_job& job, tally& to) {
    const bool histograms = job.into->histograms != nullptr;
    const bool codes = histograms || job.scales != nullptr;
    details_.wanted = job.rows != nullptr ? detail::stats : codes ? detail::codes : detail::none;
    details_.parts = job.into->decompose;
    to.totals.add(driver_->quantize(*job.params, run_, details_));
    if (details_.wanted == detail::none) return;
    if (job.scales != nullptr) {
        watch_.see(*job.scales, job.scales_member,
                   std::span(details_.scale_code.data(), run_.blocks));
    }
    if (histograms) add_histograms(job.params->element.bits, *to.histograms);
    if (job.rows == nullptr) return;
    const std::uint64_t across = run_.place.grid_cols();
    for (std::size_t b = 0; b < run_.blocks; ++b) {
        const std::uint64_t index = first_block + b / across * grid.cols() + b % across;
        job.rows->put(index, details_.stats.data()[b]);
    }
}

void panel_worker::add_histograms(int bits, metrics::histogram_tally& to) {
    for (std::size_t b = 0; b < run_.blocks; ++b) {
        to.add({details_.scale_code.data()[b], details_.amax.data()[b], details_.x_max.data()[b],
                details_.x_min.data()[b]});
    }
    // Without padding, the codes of all blocks are one run.
    const auto elements = static_cast<std::size_t>(run_.place.elements());
    const std::uint8_t* const codes = details_.codes.data();
    if (elements == run_.blocks * run_.stride)
        return to.add_codes(std::span(codes, elements), bits);
    for (std::size_t b = 0; b < run_.blocks; ++b) {
        const std::size_t size = quantize::extent_of(run_.place, b).size();
        to.add_codes(std::span(codes + b * run_.stride, size), bits);
    }
}

}  // namespace mx::pipeline
