// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/tensor_counts.hpp"

#include <algorithm>

namespace mx::engine {
namespace {

// Nanoseconds per element on one of the machines in docs/design/counting.md; only ratios matter.
constexpr double counting = 0.55;  // for any number of recipes

// Under one recipe.
double quantizing(const codec::backend& b, const codec::block_params& p) {
    if (b.takes != nullptr && !b.takes(p)) return 30;
    if (p.ocp) return 0.9;
    return codec::scales_have_codes(p) ? 1.6 : 2;
}

// If scales have no codes, nearly every largest magnitude needs its own table.
double evaluating(const codec::block_params& p) {
    return codec::scales_have_codes(p) || p.scale_format->power_of_two() ? 0.5e6 : 12e6;
}

bool are_alike(std::span<const codec::recipe_request> a, std::span<const codec::recipe_request> b) {
    return std::ranges::equal(a, b, [](const auto& s, const auto& t) {
        return s.params == t.params && s.parts == t.parts;
    });
}

}  // namespace

bool is_counted(const run_control& control, std::uint64_t elements,
                std::span<const codec::recipe_request> recipes) {
    const codec::backend& by = control.chosen_backend();
    if (control.counted_elements) return elements >= *control.counted_elements;
    double instead = 0, spent = 0;
    for (const codec::recipe_request& r : recipes) {
        instead += quantizing(by, *r.params);
        spent += evaluating(*r.params);
    }
    return static_cast<double>(elements) * (instead - counting) > spent;
}

void join_halves(std::span<counted_jobs* const> jobs, std::span<const block::grid> grids) {
    const auto with = [&](std::uint64_t cols) -> counted_jobs* {
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            const bool in_rows = grids[i].block_rows == 1 && !grids[i].whole_rows;
            if (in_rows && grids[i].block_cols == cols) return jobs[i];
        }
        return nullptr;
    };
    counted_jobs* const blocks = with(codec::joint_counts::block_size);
    counted_jobs* const halves = with(codec::joint_counts::half_size);
    if (blocks == nullptr || halves == nullptr) return;
    blocks->halves = halves;
    halves->blocks = blocks;
    blocks->joint.resize(blocks->by_thread.size());
}

codec::word_counts& count_pool::of(counted_jobs& jobs, std::size_t thread) {
    std::unique_ptr<codec::word_counts>& own = jobs.by_thread[thread];
    if (own) return *own;
    if (jobs.lasting) {
        const std::lock_guard lock(guard_);
        const auto at = std::ranges::find_if(free_, [&](const auto& c) {
            return c->type() == jobs.type && are_alike(c->recipes(), jobs.recipes);
        });
        if (at != free_.end()) {
            own = std::move(*at);
            free_.erase(at);
            return *own;
        }
    }
    own = std::make_unique<codec::word_counts>(jobs.type, jobs.recipes, passes_.one);
    return *own;
}

codec::joint_counts& count_pool::of_both(counted_jobs& blocks, std::size_t thread) {
    std::unique_ptr<codec::joint_counts>& own = blocks.joint[thread];
    if (own) return *own;
    {
        const std::lock_guard lock(guard_);
        if (!free_joint_.empty()) {
            own = std::move(free_joint_.back());
            free_joint_.pop_back();
        }
    }
    if (!own) own = std::make_unique<codec::joint_counts>(passes_.joint);
    own->begin(of(blocks, thread), of(*blocks.halves, thread));
    return *own;
}

void count_pool::settle(counted_jobs& blocks) {
    for (auto& c : blocks.joint) {
        if (!c) continue;
        c->settle();
        const std::lock_guard lock(guard_);
        free_joint_.push_back(std::move(c));
    }
}

std::vector<block::segment_stats> count_pool::finish(counted_jobs& jobs) {
    std::vector<const codec::word_counts*> parts;
    for (const auto& c : jobs.by_thread) {
        if (c) parts.push_back(c.get());
    }
    std::vector<block::segment_stats> totals;
    if (!parts.empty()) totals = counted_totals(parts);
    for (auto& c : jobs.by_thread) {
        if (!c || !jobs.lasting) {
            c.reset();
            continue;
        }
        c->clear();
        const std::lock_guard lock(guard_);
        free_.push_back(std::move(c));
    }
    return totals;
}

}  // namespace mx::engine
