// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/tensor_counts.hpp"

#include <algorithm>

namespace mx::engine {
namespace {

// How much longer than under mxfp4 a backend quantizes.
std::uint64_t weight_of(const codec::backend& b, const codec::block_params& p) {
    if (b.takes != nullptr && !b.takes(p)) return 20;
    return p.plain ? 1 : 2;
}

bool are_alike(std::span<const codec::recipe_request> a,
               std::span<const codec::recipe_request> b) {
    return std::ranges::equal(a, b, [](const auto& s, const auto& t) {
        return s.params == t.params && s.parts == t.parts;
    });
}

}  // namespace

bool is_counted(const run_control& control, std::uint64_t elements,
                std::span<const codec::recipe_request> recipes) {
    if (control.counted_elements) return elements >= *control.counted_elements;
    std::uint64_t weight = 0;
    for (const codec::recipe_request& r : recipes) {
        weight += weight_of(control.chosen_backend(), *r.params);
    }
    // Evaluating takes a part of a millisecond per recipe.
    constexpr std::uint64_t least_work = std::uint64_t{9} << 20;
    return weight > 1 && elements * weight >= least_work;
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
    own = std::make_unique<codec::word_counts>(jobs.type, jobs.recipes, pass_);
    return *own;
}

std::vector<block::segment_stats> count_pool::finish(counted_jobs& jobs) {
    std::vector<const codec::word_counts*> parts;
    for (const auto& c : jobs.by_thread) {
        if (c) parts.push_back(c.get());
    }
    std::vector<block::segment_stats> totals;
    if (!parts.empty()) totals = codec::counted_totals(parts);
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
