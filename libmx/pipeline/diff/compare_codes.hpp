// SPDX-License-Identifier: Apache-2.0
// The hot loop of a comparison: the same panel of every dump, quantized under every recipe, codes
// and scales of each dump against those of the one before.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/pipeline/control.hpp"
#include "libmx/pipeline/diff/figures.hpp"
#include "libmx/pipeline/panels.hpp"
#include "libmx/quantize/clamp_zone.hpp"
#include "libmx/quantize/driver.hpp"

namespace mx::pipeline {

/// Several threads add to these.
struct shared_codes {
    std::mutex guard;
    code_figures figures;
};

/// One recipe over the panels of all dumps. What is pointed to is not owned.
struct code_job {
    std::span<const quantize::block_params> params;  ///< by dump, or one for all
    block::grid grid;
    bool scales_have_codes = true;  ///< otherwise scales are float32
    quantize::clamp_zone zone;      ///< where block maxima are looked at; empty: nowhere
    shared_codes* into = nullptr;

    const quantize::block_params& params_of(std::size_t dump) const {
        return params.size() == 1 ? params[0] : params[dump];
    }
};

/// The scratch of one thread, kept from panel to panel.
class code_comparer {
  public:
    /// By the driver of `control`, which has to outlive it.
    explicit code_comparer(const run_control& control)
        : driver_(&control.chosen_driver()), batch_(control.make_batch()) {}

    /// Adds what lies in the panel `where` to the figures of every job. `dumps` begin at the
    /// panel's first element, as in panel_worker::run.
    void run(const panel& where, std::span<const quantize::stored_values> dumps,
             std::uint64_t tensor_id, std::span<const code_job> jobs);

  private:
    // Details of a dump and of the two before it, by its number mod 3.
    using recent = std::array<quantize::block_details, 3>;

    void run_segment(const quantize::segment_place& place, std::uint64_t at,
                     std::span<const quantize::stored_values> dumps,
                     std::span<const code_job> jobs);
    void add_dump(const code_job& job, recent& r, std::size_t dump, code_figures& to);

    const quantize::driver* driver_;
    std::unique_ptr<quantize::segment_batch> batch_;  // of drivers that have one
    quantize::block_run run_;
    std::deque<recent> details_;  // by job
    std::vector<code_figures> tallies_;
    std::vector<std::size_t> alike_;
    std::vector<bool> taken_;
};

}  // namespace mx::pipeline
