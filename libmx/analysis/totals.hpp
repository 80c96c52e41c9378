// SPDX-License-Identifier: Apache-2.0
// The sums and histograms of tensors under recipes, gathered from a run.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "libmx/engine/run.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

/// Empty totals with the facts of `r` that metrics need filled in.
metrics::totals empty_totals(const codec::recipe& r);

/// What one tensor becomes under one recipe; several threads add to it.
struct shared_totals {
    std::mutex guard;
    metrics::totals totals;  ///< `distribution` points to the histograms, when there are any
    std::unique_ptr<metrics::histograms> histograms;
};

/// Gathers the totals of every job of a batch; what derives from it uses them at the end.
class totals_visitor : public engine::visitor {
  public:
    /// With histograms, and with the parts of the squared error (metrics::when::decompose), where
    /// they are asked for. The request outlives it.
    totals_visitor(const engine::run_request& request, bool histograms, bool parts);

    std::size_t tensors_at_once() const override;
    codec::recipe_request requested(const engine::run_job&) const override;
    void begin(const engine::run_batch& b) override;
    void serialize_job(const engine::run_batch& b, std::size_t job, base::archive& with) override;
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override;
    std::optional<codec::recipe_request> beside_counts(const engine::run_job&) const override;
    void total(const engine::run_batch& b, std::size_t job, const block::segment_stats& s) override;

  protected:
    /// By job of the batch.
    const std::vector<std::unique_ptr<shared_totals>>& sums() const { return sums_; }

  private:
    std::size_t variants_;
    bool histograms_, parts_;
    std::vector<metrics::totals> empty_;  // by recipe
    std::vector<std::unique_ptr<shared_totals>> sums_;
};

}  // namespace mx::analysis
