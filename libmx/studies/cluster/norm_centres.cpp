// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/norm_centres.hpp"

#include <atomic>
#include <cmath>

#include "libmx/engine/sweep.hpp"

namespace mx::cluster {
namespace {

struct counts {
    std::atomic<std::uint64_t> finite{0}, small{0}, negative{0}, zero{0};

    void add(std::span<const float> x) {
        std::uint64_t f = 0, s = 0, n = 0, z = 0;
        for (const float v : x) {
            if (!std::isfinite(v)) continue;
            ++f;
            s += std::abs(v) < 0.5f ? 1u : 0u;
            n += v < 0 ? 1u : 0u;
            z += v == 0 ? 1u : 0u;
        }
        finite += f;
        small += s;
        negative += n;
        zero += z;
    }

    bool around_zero() const {
        return 2 * small > finite && (10 * negative >= finite || zero == finite);
    }
};

}  // namespace

norm_centres find_norm_centres(const std::vector<engine::tensor_ref>& tensors,
                               const engine::role_finder& roles,
                               const engine::run_control& control) {
    std::vector<engine::tensor_ref> norms;
    std::vector<engine::pass> passes;
    for (const engine::tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        if (info.elements == 0 || roles.role_of(info) != "norm") continue;
        const block::grid grid{{1, 1, info.elements}, 1, 1};
        passes.push_back(
            engine::pass{norms.size(), {}, engine::panel_plan(grid.over, std::span(&grid, 1))});
        norms.push_back(t);
    }
    std::vector<counts> found(norms.size());
    engine::run_control quiet = control;
    quiet.on_progress = nullptr;
    engine::sweep(norms, passes, quiet, engine::panel_form::widened,
                  [&](const engine::loaded_panel& p) { found[p.of->tensor].add(p.x); });
    norm_centres centres;
    centres.norms = norms.size();
    for (std::size_t i = 0; i < norms.size(); ++i) {
        if (found[i].around_zero()) centres.around_zero.push_back(norms[i].info().name);
    }
    return centres;
}

}  // namespace mx::cluster
