// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/amax_pass.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

#include "libmx/codec/simd/values.hpp"
#include "libmx/engine/sweep.hpp"

namespace mx::engine {
namespace {

// Whether a tensor's values are kept; depends on its size alone.
bool is_kept(const io::tensor_info& info, const run_control& control) {
    return info.elements <= control.kept_elements;
}

// Common to several requested facts of a tensor: the maximum over values with the same input
// transform.
struct search {
    fact_request what;
    std::atomic<std::uint32_t> amax{0};

    void raise(std::uint32_t value) {
        std::uint32_t seen = amax.load();
        while (seen < value && !amax.compare_exchange_weak(seen, value)) {
        }
    }
};

using tensor_searches = std::vector<std::unique_ptr<search>>;

// The searches of the tensors, and the search for each requested fact.
struct searches {
    std::vector<tensor_searches> of;                    // by tensor
    std::vector<std::vector<std::size_t>> answered_by;  // by tensor and request

    explicit searches(const std::vector<std::vector<fact_request>>& requests)
        : of(requests.size()) {
        for (std::size_t t = 0; t < requests.size(); ++t) {
            answered_by.emplace_back();
            for (const fact_request& w : requests[t]) answered_by[t].push_back(find(of[t], w));
        }
    }

    static std::size_t find(tensor_searches& all, const fact_request& w) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const fact_request& other = all[i]->what;
            if (other.how == w.how && alike(w.how, other.grid, w.grid)) return i;
        }
        all.push_back(std::make_unique<search>());
        all.back()->what = w;
        return all.size() - 1;
    }
};

// The searches that can use any panels, and those whose panels contain whole rotated groups.
std::vector<grid_job> jobs_of(const tensor_searches& of, bool rotating) {
    std::vector<grid_job> jobs;
    for (std::size_t s = 0; s < of.size(); ++s) {
        if (of[s]->what.how.rotates() == rotating) jobs.push_back({s, of[s]->what.grid});
    }
    return jobs;
}

// Processes a panel for the searches of its pass.
void look(const tensor_searches& of, const loaded_panel& p) {
    base::aligned_buffer<float> buffer;
    for (const grid_job& j : p.of->jobs) {
        search& s = *of[j.job];
        if (s.what.how.nothing()) {
            s.raise(codec::simd::finite_amax(p.values, p.where.elements()));
            continue;
        }
        prepare(s.what.how, s.what.grid, p.where, p.values, buffer);
        s.raise(finite_amax(std::span(buffer.data(), p.where.elements())));
    }
}

}  // namespace

std::uint32_t finite_amax(std::span<const float> x) {
    return codec::simd::finite_amax({tensor::dtype::f32, std::as_bytes(x).data(), x.size()},
                                    x.size());
}

std::size_t tensors_of_amax_pass(const std::vector<tensor_ref>& tensors, std::size_t first,
                                 std::size_t limit, const run_control& control) {
    std::size_t count = 0;
    std::uint64_t left = control.kept_elements;
    while (count < limit && first + count < tensors.size()) {
        const std::uint64_t elements = tensors[first + count].info().elements;
        if (count > 0 && elements > left) break;
        left -= std::min(left, elements);
        ++count;
    }
    return std::max<std::size_t>(1, count);
}

amax_pass run_amax_pass(const std::vector<tensor_ref>& tensors,
                        const std::vector<std::vector<fact_request>>& requests,
                        const run_control& control) {
    amax_pass found;
    found.facts.resize(tensors.size());
    found.kept.resize(tensors.size());
    const searches all(requests);
    std::vector<std::atomic<std::uint64_t>> inexact(tensors.size());
    std::vector<pass> flat, rotated;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const io::tensor_info& info = tensors[t].info();
        if (info.elements == 0) continue;
        if (is_kept(info, control)) found.kept[t].keep(tensors[t]);
        const block::grid grid{{1, 1, info.elements}, 1, 1};
        std::vector<grid_job> jobs = jobs_of(all.of[t], false);
        if (!jobs.empty() || found.kept[t].copies()) {
            flat.push_back(pass{t, std::move(jobs), panel_plan(grid.over, std::span(&grid, 1))});
        }
        for (pass& p : plan_passes(t, jobs_of(all.of[t], true))) rotated.push_back(std::move(p));
    }
    run_control quiet = control;
    quiet.on_progress = nullptr;
    sweep(tensors, flat, quiet, panel_form::stored, [&](const loaded_panel& p) {
        const std::size_t t = p.of->tensor;
        look(all.of[t], p);
        if (!found.kept[t].copies()) return;
        inexact[t] += p.inexact;
        found.kept[t].put(p.where.col, p.values, p.where.elements());
    });
    sweep(
        tensors, rotated, quiet, panel_form::stored,
        [&](const loaded_panel& p) { look(all.of[p.of->tensor], p); }, found.kept);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        for (const std::size_t s : all.answered_by[t]) {
            found.facts[t].push_back({all.of[t][s]->amax});
        }
        found.inexact.push_back(inexact[t]);
    }
    return found;
}

}  // namespace mx::engine
