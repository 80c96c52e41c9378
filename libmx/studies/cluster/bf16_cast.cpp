// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/bf16_cast.hpp"

#include <cmath>
#include <mutex>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/half.hpp"
#include "libmx/engine/sweep.hpp"

namespace mx::cluster {
namespace {

struct cast_error {
    std::mutex guard;
    base::exact_sum squares;
    std::uint64_t finite = 0;
    bool beyond = false;

    void add(std::span<const float> x) {
        // One segment: a plain sum in a fixed order.
        double sum = 0;
        std::uint64_t n = 0;
        bool far = false;
        for (const float v : x) {
            if (!std::isfinite(v)) continue;
            const float d = base::rounded_to_bf16(v);
            ++n;
            if (!std::isfinite(d)) {
                far = true;
                continue;
            }
            const double error = static_cast<double>(d) - static_cast<double>(v);
            sum += error * error;
        }
        const std::lock_guard lock(guard);
        squares.add(sum);
        finite += n;
        beyond = beyond || far;
    }

    report::value rmse() const {
        if (finite == 0 || beyond) return {};
        return std::sqrt(squares.value() / static_cast<double>(finite));
    }
};

}  // namespace

std::vector<report::value> bf16_cast_rmse(const std::vector<engine::tensor_ref>& tensors,
                                          const analysis::analysis_request& request,
                                          const engine::run_control& control) {
    std::vector<cast_error> errors(tensors.size());
    std::vector<engine::pass> passes;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const block::grid grid{{1, 1, tensors[t].info().elements}, 1, 1};
        if (grid.over.cols == 0) continue;
        passes.push_back(
            engine::pass{t, {{t, grid}}, engine::panel_plan(grid.over, std::span(&grid, 1))});
    }
    engine::run_control quiet = control;
    quiet.on_progress = nullptr;
    engine::sweep(
        tensors, passes, quiet, engine::panel_form::widened, [&](const engine::loaded_panel& p) {
            const std::size_t t = p.of->tensor;
            const block::grid& grid = p.of->jobs.front().grid;
            const engine::preparation how =
                analysis::preparation_of(request, tensors[t].info(), {}, 1);
            std::vector<float> x(p.x.begin(), p.x.end());
            engine::prepare(how, grid, p.where, x);
            engine::for_each_segment(grid, p.where, [&](const engine::segment_in_panel& s) {
                errors[t].add(std::span(x).subspan(s.col, s.cols));
            });
        });
    std::vector<report::value> rmse;
    for (const cast_error& e : errors) rmse.push_back(e.rmse());
    return rmse;
}

}  // namespace mx::cluster
