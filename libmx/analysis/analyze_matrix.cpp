// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/analyze_matrix.hpp"

#include <string>

#include "libmx/analysis/panel_worker.hpp"
#include "libmx/analysis/recipe_totals.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/sweep.hpp"

namespace mx::analysis {

std::vector<matrix_totals> analyze_matrix(const matrix& m, std::span<const codec::recipe> recipes,
                                          bool histograms, const engine::run_control& control,
                                          bool decompose) {
    if (!codec::is_stored(m.type)) {
        throw base::error(base::error_kind::usage, "a matrix in memory is of F32, BF16 or F16");
    }
    std::vector<codec::block_params> params;
    std::vector<engine::grid_job> grids;
    std::vector<std::unique_ptr<shared_totals>> sums;
    for (const codec::recipe& r : recipes) {
        std::string reason;
        const auto layout = engine::lay_out({m.rows, m.cols}, r, reason);
        if (!layout) throw base::error(base::error_kind::usage, "a matrix: " + reason);
        if (layout->grid.over.elements() != 0) grids.push_back({params.size(), layout->grid});
        params.push_back(codec::params_of(r));
        sums.push_back(std::make_unique<shared_totals>());
        sums.back()->totals = empty_totals(r);
        sums.back()->decompose = decompose;
        if (histograms) sums.back()->histograms = std::make_unique<metrics::histograms>();
    }
    std::vector<std::unique_ptr<panel_worker>> workers;
    for (int i = 0; i < base::thread_count(control.threads); ++i) {
        workers.push_back(std::make_unique<panel_worker>(control));
    }
    for (const engine::pass& p :
         engine::plan_passes(0, grids, engine::panel_target_of(control.chosen_backend()))) {
        std::vector<panel_job> jobs;
        for (const engine::grid_job& g : p.jobs) {
            jobs.push_back({&params[g.job], g.grid, sums[g.job].get(), nullptr,
                            engine::preparation{0, 1, recipes[g.job].rotate}});
        }
        const std::uint64_t stride = p.panels.over().cols;
        base::parallel_for(
            p.panels.count(), control.threads, control.cancel, [&](std::uint64_t i, int thread) {
                const engine::panel where = p.panels.at(i);
                const codec::stored_values all{m.type, m.data, stride};
                const std::uint64_t row = where.batch * p.panels.over().rows + where.row;
                workers[static_cast<std::size_t>(thread)]->run(
                    where, all.from(row * stride + where.col), base::tensor_id(m.name), jobs);
            });
    }
    std::vector<matrix_totals> out(recipes.size());
    for (std::size_t r = 0; r < out.size(); ++r) {
        out[r].totals = sums[r]->totals;
        out[r].histograms = std::move(sums[r]->histograms);
        out[r].totals.distribution = out[r].histograms.get();
    }
    return out;
}

}  // namespace mx::analysis
