// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/compare_panels.hpp"

#include <utility>

#include "libmx/studies/diff/compare_values.hpp"

namespace mx::diff {

panel_comparer::panel_comparer(const engine::run_control& control, std::size_t dumps)
    : codes_(control), rooms_(dumps), rotated_(dumps), ready_(dumps) {}

void panel_comparer::run(tensor_job& job, std::uint64_t tensor_id,
                         const engine::loaded_panel& first,
                         std::span<const std::unique_ptr<engine::panel_reader>> others) {
    read(job.bias, first, others);
    left_.clear();
    for (const engine::grid_job& g : first.of->jobs) {
        if (g.job == values_job) {
            compare_values(job, g.grid, first.where);
        } else {
            left_.push_back(g.job);
        }
    }
    while (!left_.empty()) {
        const recipe_job& like = *job.recipes[left_.front()];
        take_alike(job, like);
        rotate(like, first.where);
        codes_.run(first.where, ready_, tensor_id, jobs_);
    }
}

// Every dump in float32, the bias added.
void panel_comparer::read(float bias, const engine::loaded_panel& first,
                          std::span<const std::unique_ptr<engine::panel_reader>> others) {
    const block::grid& any = first.of->jobs.front().grid;
    for (std::size_t d = 0; d < rooms_.size(); ++d) {
        std::vector<float>& x = rooms_[d].x;
        if (d == 0) {
            x.assign(first.x.begin(), first.x.end());
        } else {
            std::uint64_t inexact = 0;
            others[d - 1]->read(*first.of, first.pass_index, first.where,
                                engine::panel_form::widened, rooms_[d], inexact);
        }
        engine::prepare(engine::preparation{bias, 1, {}}, any, first.where, x);
    }
}

void panel_comparer::compare_values(tensor_job& job, const block::grid& grid,
                                    const engine::panel& where) {
    values_.assign(job.values.size(), {});
    engine::for_each_segment(grid, where, [&](const engine::segment_in_panel& s) {
        const std::uint64_t at = (s.batch * where.rows + s.row) * where.cols + s.col;
        for (std::size_t k = 0; k < values_.size(); ++k) {
            add_values(rooms_[k].x.data() + at, rooms_[k + 1].x.data() + at, s.rows, s.cols,
                       where.cols, values_[k]);
        }
    });
    const std::lock_guard lock(job.guard);
    for (std::size_t k = 0; k < values_.size(); ++k) job.values[k].merge(values_[k]);
}

// Of the recipes that are left, those that rotate values as `like` does.
void panel_comparer::take_alike(tensor_job& job, const recipe_job& like) {
    const engine::preparation how{0, 1, like.rotate};
    jobs_.clear();
    later_.clear();
    for (const std::size_t r : left_) {
        recipe_job& j = *job.recipes[r];
        if (j.rotate == like.rotate && engine::alike(how, j.grid, like.grid)) {
            jobs_.push_back({j.params, j.grid, j.scales_have_codes, j.zone, &j.codes});
        } else {
            later_.push_back(r);
        }
    }
    std::swap(left_, later_);
}

// The panels as `like` sees them.
void panel_comparer::rotate(const recipe_job& like, const engine::panel& where) {
    const engine::preparation how{0, 1, like.rotate};
    for (std::size_t d = 0; d < rooms_.size(); ++d) {
        std::span<const float> x = rooms_[d].x;
        if (how.rotates()) {
            rotated_[d].assign(x.begin(), x.end());
            engine::prepare(how, like.grid, where, rotated_[d]);
            x = rotated_[d];
        }
        ready_[d] = {tensor::dtype::f32, std::as_bytes(x).data(), where.cols};
    }
}

}  // namespace mx::diff
