// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using report::cell;

constexpr std::size_t worst_shown = 10;
constexpr std::size_t shown_findings = 10;
/// Values that a page holds for sorting and filtering: some megabytes of it.
constexpr std::size_t most_values = 1'200'000;
constexpr std::size_t most_columns = 32;

// What a tensor loses under what is recommended for its class, or, where no recipe is, under what
// errs least on the class. What keeps its stored precision loses nothing.
struct loss {
    std::size_t tensor;
    std::size_t cell;
    bool unquantized;
    double nrmse;
};

std::optional<std::size_t> least_error(const recommendation& r) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < r.candidates.size(); ++i) {
        if (!best || r.candidates[i].sqnr_db > r.candidates[*best].sqnr_db) best = i;
    }
    return best;
}

std::vector<loss> losses_of(const evidence& e, const recommendations& all) {
    std::vector<loss> losses;
    for (const recommendation& r : all) {
        if (r.kept) continue;
        const auto at = r.chosen ? r.chosen : least_error(r);
        if (!at) continue;
        const std::size_t cell = r.candidates[*at].cell;
        for (const std::size_t t : r.tensors) {
            const double nrmse = e.table.of(t, e.plan.cells[cell].runs.front()).nrmse;
            if (nrmse > 0) losses.push_back({t, cell, !r.chosen, nrmse});
        }
    }
    std::ranges::stable_sort(losses, std::greater{}, &loss::nrmse);
    return losses;
}

// The rows and columns of the explorer, fewer where a page could not hold all.
report::explorer explorer_of(const evidence& e, const std::vector<loss>& losses,
                             std::vector<std::string>& notes) {
    const std::size_t tensors = e.table.tensors.size();
    const std::size_t columns = std::min(e.plan.cells.size(), most_columns);
    const std::size_t fit = std::max<std::size_t>(
        worst_shown, most_values / std::max<std::size_t>(1, columns * e.metrics.size()));
    std::vector<std::size_t> rows(tensors);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    if (tensors > fit) {
        rows.clear();
        for (const loss& l : losses) {
            if (rows.size() < fit) rows.push_back(l.tensor);
        }
        std::ranges::sort(rows);
        notes.push_back(fmt::format(
            "The table of tensors holds the {} with the largest relative error of {}; the others "
            "are in the results.",
            report::grouped(static_cast<std::int64_t>(rows.size())),
            report::grouped(static_cast<std::int64_t>(tensors))));
    }
    if (columns < e.plan.cells.size()) {
        notes.push_back(fmt::format("The table of tensors holds the first {} of {} recipes.",
                                    columns, e.plan.cells.size()));
    }
    report::explorer x;
    x.row_title = "tensor";
    for (std::size_t c = 0; c < columns; ++c) x.columns.push_back(e.cell_name(c));
    for (const std::size_t t : rows) {
        x.rows.push_back(e.tensor_name(t));
        x.classes.push_back(e.table.tensors[t].of->role);
    }
    for (const report::explorer::metric& m : e.metrics) {
        report::explorer::metric of = {m.name,  m.title,           m.unit,   m.definition,
                                       m.share, m.larger_is_worse, m.digits, {}};
        for (std::size_t c = 0; c < columns; ++c) {
            of.values.emplace_back();
            for (const std::size_t t : rows) of.values.back().push_back(m.values[c][t]);
        }
        x.metrics.push_back(std::move(of));
    }
    return x;
}

}  // namespace

report::section worst_section(const evidence& e, const recommendations& all) {
    report::section s;
    const std::vector<loss> losses = losses_of(e, all);
    const std::size_t shown = std::min(worst_shown, losses.size());
    s.heading = shown == 0               ? "Tensors"
                : shown == losses.size() ? "Tensors, worst first"
                                         : fmt::format("The worst {} tensors", shown);
    if (shown > 0) {
        s.columns = columns_of({"tensor", "role", "recipe", "elements", "sqnr_db", "clamp_rate",
                                "underflow_rate", "saturated_block_rate"});
        s.notes.push_back(
            "Worst: the largest error relative to the tensor's RMS under the recipe recommended "
            "for its class.");
    } else {
        s.notes.push_back("No tensor loses anything under what is recommended.");
    }
    bool any_unquantized = false;
    for (std::size_t i = 0; i < shown; ++i) {
        const loss& l = losses[i];
        const analysis::result& r = e.table.of(l.tensor, e.plan.cells[l.cell].runs.front());
        s.add(e.tensor_name(l.tensor), e.table.tensors[l.tensor].of->role,
              e.cell_name(l.cell) + (l.unquantized ? " *" : ""), r.elements, r.sqnr_db,
              r.clamp_rate, r.underflow_rate, r.saturated_block_rate);
        any_unquantized = any_unquantized || l.unquantized;
    }
    if (any_unquantized) {
        s.notes.push_back(
            "*: no recipe is recommended for the class; the figures are those of the recipe with "
            "the "
            "least error on it.");
    }
    return s;
}

report::section tensors_section(const evidence& e, const recommendations& all) {
    report::section s{.heading = "All tensors"};
    s.all = explorer_of(e, losses_of(e, all), s.notes);
    return s;
}

std::vector<report::section> finding_sections(const evidence& e) {
    if (!e.examined) return {};
    report::section s{.heading = "Blocks that lose what told their elements apart"};
    if (e.findings.empty()) {
        s.notes.push_back("mx cluster found no tensor in danger.");
        return {std::move(s)};
    }
    s.columns = {{"tensor", "tensor", cell::name},
                 {"recipe", "recipe"},
                 {"verdict", "what happens"},
                 {"ailing_block_rate", "blocks\n%", cell::share},
                 {"nrmse", "R-MSE\n/ RMS", cell::significant, 4},
                 {"mend", "what mends it"}};
    const std::size_t shown = std::min(shown_findings, e.findings.size());
    for (std::size_t i = 0; i < shown; ++i) s.rows.push_back(*e.findings[i]);
    s.notes.push_back(fmt::format(
        "Found by mx cluster, most severe first{}. What mends it was measured on the tensor.",
        shown < e.findings.size() ? fmt::format("; {} of {}", shown, e.findings.size()) : ""));
    return {std::move(s)};
}

}  // namespace mx::pages
