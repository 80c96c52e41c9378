// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/common_tensors.hpp"

#include <algorithm>

#include "libmx/studies/compare/ranking.hpp"

namespace mx::compare {
namespace {

// The cells of a plan and its baseline, without those that no tensor was measured under.
std::vector<const cell*> contenders(const board& b, const sweep_plan& plan,
                                    std::span<const std::size_t> among, std::size_t phase) {
    std::vector<const cell*> all;
    const auto add = [&](const cell& c) {
        if (!unmeasured(b, c, among, phase)) all.push_back(&c);
    };
    for (const cell& c : plan.cells) add(c);
    if (!plan.baseline_is_cell) add(plan.baseline);
    return all;
}

// Finds the tensors that all contenders were measured on.
void choose_tensors(const board& b, const std::vector<const cell*>& cells,
                    std::span<const std::size_t> among, std::size_t phase, common_tensors& to) {
    for (const std::size_t t : among) {
        const auto measured = std::ranges::count_if(
            cells, [&](const cell* c) { return rmse_of(b, t, *c, phase).has_value(); });
        if (measured == 0) continue;
        if (static_cast<std::size_t>(measured) < cells.size()) {
            ++to.not_everywhere;
            continue;
        }
        to.tensors.push_back(t);
        const auto counted = [&](const cell* c) {
            return b.of(t, c->runs.front(), phase).counted();
        };
        to.uneven += std::ranges::any_of(
            cells, [&](const cell* c) { return counted(c) != counted(cells.front()); });
    }
}

// Whether one of the runs of a cell has no error on a tensor.
bool exact_on(const board& b, std::size_t tensor, const cell& c, std::size_t phase) {
    return std::ranges::any_of(c.runs,
                               [&](std::size_t run) { return b.of(tensor, run, phase).rmse == 0; });
}

void choose_compared(const board& b, std::vector<const cell*> cells, std::size_t phase,
                     common_tensors& to) {
    std::erase_if(cells, [&](const cell* c) {
        return std::ranges::all_of(to.tensors,
                                   [&](std::size_t t) { return exact_on(b, t, *c, phase); });
    });
    for (const std::size_t t : to.tensors) {
        const bool exact =
            std::ranges::any_of(cells, [&](const cell* c) { return exact_on(b, t, *c, phase); });
        if (!exact) to.compared.push_back(t);
    }
}

}  // namespace

bool unmeasured(const board& b, const cell& c, std::span<const std::size_t> among,
                std::size_t phase) {
    return std::ranges::none_of(among,
                                [&](std::size_t t) { return rmse_of(b, t, c, phase).has_value(); });
}

common_tensors tensors_in_common(const board& b, const sweep_plan& plan,
                                 std::span<const std::size_t> among, std::size_t phase) {
    common_tensors c;
    const std::vector<const cell*> cells = contenders(b, plan, among, phase);
    choose_tensors(b, cells, among, phase, c);
    choose_compared(b, cells, phase, c);
    return c;
}

}  // namespace mx::compare
