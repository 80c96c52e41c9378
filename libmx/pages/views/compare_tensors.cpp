// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/compare_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "libmx/pages/views/recipe_cell.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/words.hpp"

namespace mx::pages {
namespace {

using namespace compare;
using report::cell;

constexpr std::size_t shown_tensors = 10;
constexpr std::size_t worst_room = 60;

// A recipe's transform in short: "hadamard of 32".
std::string transform_of(const codec::recipe& r) {
    switch (r.rotate.what) {
        case transform::kind::none:
            return "none";
        case transform::kind::hadamard:
            return fmt::format("hadamard of {}", r.rotate.size);
        case transform::kind::random_hadamard:
            return fmt::format("random-hadamard of {}, seed {}", r.rotate.size, r.rotate.seed);
    }
    return {};
}

}  // namespace

report::section worst_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    if (c.tensors.size() < 2 || c.overall.cells.empty()) return s;
    const std::size_t first = c.overall.cells.front().cell;
    const std::size_t run = plan.cells[first].runs.front();
    std::vector<std::pair<double, std::size_t>> losses;
    for (const std::size_t t : c.tensors) {
        const double nrmse = c.table.of(t, run).nrmse;
        if (nrmse > 0) losses.emplace_back(nrmse, t);
    }
    std::ranges::stable_sort(losses,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    if (losses.size() > shown_tensors) losses.resize(shown_tensors);
    s.heading = fmt::format("Tensors that lose most under {}", plan.cells[first].name);
    s.columns = {{"recipe", "recipe"},
                 {"rmse", "R-MSE", cell::significant},
                 {"sqnr_db", "SQNR\ndB", cell::fixed, 2},
                 {"clamp", "clamp\n%", cell::share},
                 {"underflow", "under-\nflow %", cell::share}};
    s.group_field = "tensor";
    const auto add = [&](std::size_t t, std::size_t which, const std::string& remark) {
        const analysis::result& r = c.table.of(t, plan.cells[which].runs.front());
        s.rows.push_back({{"tensor", c.table.tensors[t].of->tensor},
                          {"recipe", breakable(plan.cells[which].name, worst_room) + remark},
                          {"rmse", finite_or_null(r.rmse)},
                          {"sqnr_db", finite_or_null(r.sqnr_db)},
                          {"clamp", finite_or_null(r.clamp_rate)},
                          {"underflow", finite_or_null(r.underflow_rate)}});
    };
    for (const auto& [loss, t] : losses) {
        add(t, first, "");
        const std::optional<std::size_t> best = best_on(plan, c.table, t);
        const auto here = rmse_of(c.table, t, plan.cells[first]);
        const auto least = best ? rmse_of(c.table, t, plan.cells[*best]) : here;
        if (here && least && *least < *here * (1 - same_rmse)) add(t, *best, " (best there)");
    }
    return s;
}

report::section crest_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    bool rotates = false;
    std::vector<std::pair<std::string, std::size_t>> transforms;  // and a run under it
    for (const compare::cell& one : plan.cells) {
        rotates = rotates || !(one.recipe.rotate == transform::rotation{});
        const std::string name = transform_of(one.recipe);
        const auto known =
            std::ranges::find_if(transforms, [&](const auto& t) { return t.first == name; });
        if (known == transforms.end()) transforms.emplace_back(name, one.runs.front());
    }
    if (!rotates) return s;
    s.heading = "Crest factors, max |x| / rms, of what is quantized";
    s.columns = {{"transform", "transform"},
                 {"mean", "geometric\nmean", cell::significant},
                 {"largest", "largest", cell::significant},
                 {"tensor", "in tensor", cell::name}};
    for (const auto& [name, run] : transforms) {
        double logs = 0;
        double count = 0;
        double largest = 0;
        std::size_t where = 0;
        for (const std::size_t t : c.tensors) {
            const double crest = c.table.of(t, run).crest_factor;
            if (std::isnan(crest)) continue;
            logs += std::log(crest);
            ++count;
            if (crest <= largest) continue;
            largest = crest;
            where = t;
        }
        if (count == 0) continue;
        s.rows.push_back({{"transform", name},
                          {"mean", real(std::exp(logs / count))},
                          {"largest", real(largest)},
                          {"tensor", c.table.tensors[where].of->tensor}});
    }
    return s;
}

}  // namespace mx::pages
