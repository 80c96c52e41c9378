// SPDX-License-Identifier: Apache-2.0
// The hot loop: a panel in memory, quantized under every recipe that is laid over it. `analyze` and
// the benchmarks both run this.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/analysis/block_table.hpp"
#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/preparation.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

/// What one tensor becomes under one recipe; several threads add to it.
struct shared_totals {
    std::mutex guard;
    metrics::totals totals;
    std::unique_ptr<metrics::histograms> histograms;  ///< none unless they are wanted
    bool decompose = false;                           ///< the parts of the squared error are wanted
};

/// One recipe over a panel. The pointers are not owned.
struct panel_job {
    const codec::block_params* params;
    block::grid grid;
    shared_totals* into;
    block_rows* rows;         ///< the block table, or null
    engine::preparation how;  ///< what happens to the values first
    /// Where its scale bytes are compared with those of others, or null, and its place among them.
    shared_scale_pairs* scales = nullptr;
    std::size_t scales_member = 0;
};

/// The scratch of one thread, kept from panel to panel.
class panel_worker {
  public:
    /// By the backend of `control`, which has to outlive it.
    explicit panel_worker(const engine::run_control& control) : quantizer_(control) {}

    /// Adds what lies in the panel `where` to the totals of every job. `values` begins at the
    /// panel's first element; matrices follow each other at where.rows * values.stride elements.
    void run(const engine::panel& where, const codec::stored_values& values,
             std::uint64_t tensor_id, std::span<const panel_job> jobs);

  private:
    struct tally {
        metrics::totals totals;
        std::unique_ptr<metrics::histogram_tally> histograms;
    };
    void run_prepared(const engine::panel& where, const codec::stored_values& values,
                      std::uint64_t tensor_id, std::span<const panel_job> jobs,
                      std::span<const std::size_t> same);
    void run_segments(const engine::panel& where, const codec::stored_values& values,
                      std::uint64_t tensor_id, std::span<const panel_job> jobs,
                      std::span<const std::size_t> alike);
    void add_segment(const engine::quantized_segment& s, const panel_job& job,
                     const codec::segment_result& result, tally& to);

    engine::panel_quantizer quantizer_;
    std::vector<codec::recipe_request> recipes_;
    std::vector<tally> tallies_;  // one per job of the panel
    scale_watch watch_;
    base::aligned_buffer<float> prepared_;
    std::vector<std::size_t> same_, alike_;
    std::vector<bool> taken_, laid_;
};

}  // namespace mx::analysis
