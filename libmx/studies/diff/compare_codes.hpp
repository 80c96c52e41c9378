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

#include "libmx/codec/clamp_zone.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/panels.hpp"
#include "libmx/studies/diff/figures.hpp"

namespace mx::diff {

/// Several threads add to these.
struct shared_codes {
    std::mutex guard;
    code_figures figures;
};

/// One recipe over the panels of all dumps. What is pointed to is not owned.
struct code_job {
    std::span<const codec::block_params> params;  ///< by dump, or one for all
    block::grid grid;
    bool scales_have_codes = true;  ///< otherwise scales are float32
    codec::clamp_zone zone;         ///< where block maxima are looked at; empty: nowhere
    shared_codes* into = nullptr;

    const codec::block_params& params_of(std::size_t dump) const {
        return params.size() == 1 ? params[0] : params[dump];
    }
};

/// The scratch of one thread, kept from panel to panel.
class code_comparer {
  public:
    /// By the backend of `control`, which has to outlive it.
    explicit code_comparer(const engine::run_control& control)
        : quantizer_(control.make_quantizer()) {}

    /// Adds what lies in the panel `where` to the figures of every job. `dumps` begin at the
    /// panel's first element, as in panel_worker::run.
    void run(const engine::panel& where, std::span<const codec::stored_values> dumps,
             std::uint64_t tensor_id, std::span<const code_job> jobs);

  private:
    // The blocks of one dump, kept while those of the next two are looked at.
    struct kept_blocks {
        std::vector<std::uint8_t> codes, scale_code;
        std::vector<std::uint16_t> offset;
        std::vector<float> scale;  ///< of recipes whose scales have no codes
        std::size_t stride = 0;
        void keep(const codec::block_results& d);
    };
    // Of a dump and of the two before it, by its number mod 3.
    using recent = std::array<kept_blocks, 3>;

    void run_segment(const codec::placed_segment& segment, const engine::panel& where,
                     std::span<const codec::stored_values> dumps, std::span<const code_job> jobs);
    static void add_dump(const codec::segment_place& place, const code_job& job,
                         const codec::segment_result& result, recent& r, std::size_t dump,
                         code_figures& to);

    std::unique_ptr<codec::quantizer> quantizer_;
    std::vector<codec::recipe_request> requests_;
    std::deque<recent> blocks_;  // by job
    std::vector<code_figures> tallies_;
    std::vector<std::size_t> alike_;
    std::vector<bool> taken_;
};

}  // namespace mx::diff
