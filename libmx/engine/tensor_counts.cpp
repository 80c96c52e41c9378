// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/tensor_counts.hpp"

#include <algorithm>

#include "libmx/base/parallel.hpp"

namespace mx::engine {
namespace {

// Nanoseconds per element. On the CPU, those of one of the machines in docs/design/counting.md;
// only their ratios matter. On a device, estimates from the instructions of its kernels
// (docs/design/cuda.md) and from the rate of PCIe 5.
struct element_costs {
    double copying;                                // to the device, while it computes
    double counting;                               // for any number of recipes
    double plain, general, own_scales, reference;  // for each recipe
};
constexpr element_costs on_cpu{0, 0.55, 0.9, 1.6, 2, 30};
constexpr element_costs on_device{0.036, 0.0006, 0.0008, 0.013, 0.013, 0.013};
constexpr double looking_up = 0.0013;

double quantizing(const codec::backend& b, bool device, const block::grid& g,
                  const codec::block_params& p) {
    const element_costs& each = device ? on_device : on_cpu;
    if (b.takes != nullptr && !b.takes(p)) return each.reference;
    if (p.plain) return each.plain;
    if (b.looks_up != nullptr && b.looks_up(p, g.block_rows, g.block_cols)) return looking_up;
    return codec::scales_have_codes(p) ? each.general : each.own_scales;
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

bool is_counted(const run_control& control, const block::grid& g, std::uint64_t elements,
                std::span<const codec::recipe_request> recipes) {
    const codec::backend& by = control.chosen_backend();
    const bool device = by.make_word_device != nullptr;
    const std::uint64_t size =
        std::min(g.block_rows, g.over.rows) * std::min(g.block_cols, g.over.cols);
    if (device && (g.whole_rows || !codec::word_device::takes(size))) return false;
    if (control.counted_elements) return elements >= *control.counted_elements;
    const element_costs& each = device ? on_device : on_cpu;
    double instead = 0, spent = 0;
    for (const codec::recipe_request& r : recipes) {
        instead += quantizing(by, device, g, *r.params);
        spent += evaluating(*r.params);
    }
    const double saved = std::max(instead, each.copying) - std::max(each.counting, each.copying);
    // Threads evaluate several tensors at a time beside a device, which does one pass at a time.
    if (device) spent /= base::thread_count(control.threads);
    return static_cast<double>(elements) * saved > spent;
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
    std::unique_ptr<codec::word_device> device;
    if (backend_.make_word_device != nullptr) {
        device = backend_.make_word_device(jobs.type, passes_.one, notices_);
    }
    own = std::make_unique<codec::word_counts>(jobs.type, jobs.recipes, passes_.one,
                                               std::move(device));
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
        if (!c) continue;
        c->settle();
        parts.push_back(c.get());
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
