// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/prologue.hpp"

#include <algorithm>
#include <atomic>

#include "libmx/base/bits.hpp"
#include "libmx/pipeline/sweep.hpp"

namespace mx::pipeline {
namespace {

std::uint32_t finite_amax(std::span<const float> x) {
    std::uint32_t amax = 0;
    for (const float v : x) {
        const std::uint32_t magnitude = base::bits_of(v) & base::f32_magnitude_mask;
        if (magnitude < base::f32_infinity) amax = std::max(amax, magnitude);
    }
    return amax;
}

void raise(std::atomic<std::uint32_t>& to, std::uint32_t value) {
    std::uint32_t seen = to.load();
    while (seen < value && !to.compare_exchange_weak(seen, value)) {
    }
}

}  // namespace

std::size_t prologue_share(const std::vector<tensor_ref>& tensors, std::size_t first,
                           std::size_t limit, const run_control& control) {
    std::size_t count = 0;
    std::uint64_t room = control.kept_elements;
    while (count < limit && first + count < tensors.size()) {
        const std::uint64_t elements = tensors[first + count].info().elements;
        if (count > 0 && elements > room) break;
        room -= std::min(room, elements);
        ++count;
    }
    return std::max<std::size_t>(1, count);
}

prologue run_prologue(const std::vector<tensor_ref>& tensors, const run_control& control) {
    prologue found;
    found.facts.resize(tensors.size());
    found.kept.resize(tensors.size());
    std::vector<std::atomic<std::uint32_t>> amax(tensors.size());
    std::vector<std::atomic<std::uint64_t>> inexact(tensors.size());
    std::vector<pass> passes;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const io::tensor_info& info = tensors[t].info();
        if (info.elements == 0) continue;
        if (is_kept(info, control)) found.kept[t].resize(info.elements);
        const block::grid grid{{1, 1, info.elements}, 1, 1};
        passes.push_back(pass{t, {}, panel_plan(grid.over, std::span(&grid, 1))});
    }
    run_control quiet = control;
    quiet.on_progress = nullptr;
    sweep(tensors, passes, quiet, panel_form::widened, [&](const loaded_panel& p) {
        const std::size_t t = p.of->tensor;
        raise(amax[t], finite_amax(p.x));
        if (found.kept[t].empty()) return;
        inexact[t] += p.inexact;
        std::copy(p.x.begin(), p.x.end(),
                  found.kept[t].begin() + static_cast<std::ptrdiff_t>(p.where.col));
    });
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        found.facts[t].amax_bits = amax[t];
        found.inexact.push_back(inexact[t]);
    }
    return found;
}

}  // namespace mx::pipeline
