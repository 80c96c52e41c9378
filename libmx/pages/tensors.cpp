// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using report::cell;

constexpr std::size_t fewest_rows = 10;
constexpr std::size_t shown_findings = 10;
/// Limit of values on a page for sorting and filtering: some megabytes.
constexpr std::size_t most_values = 1'200'000;
constexpr std::size_t most_columns = 32;

// The rows and columns of the explorer, reduced if a page could not hold all.
report::explorer explorer_of(const evidence& e, const std::vector<std::size_t>& worst_first,
                             report::notes& notes) {
    const std::size_t tensors = e.table.tensors.size();
    const std::size_t columns = std::min(e.plan.cells.size(), most_columns);
    const std::size_t fit = std::max<std::size_t>(
        fewest_rows, most_values / std::max<std::size_t>(1, columns * e.metrics.size()));
    std::vector<std::size_t> rows(tensors);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    if (tensors > fit) {
        // Tensors that are not operands of products come last.
        std::vector<std::size_t> order = worst_first;
        std::vector<bool> there(tensors);
        for (const std::size_t t : order) there[t] = true;
        for (const std::size_t t : rows) {
            if (!there[t]) order.push_back(t);
        }
        rows.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(fit));
        std::ranges::sort(rows);
        notes.push_back(fmt::format(
            "The table of tensors has the {} worst of {}; the others are in the results.",
            report::grouped(static_cast<std::int64_t>(rows.size())),
            report::grouped(static_cast<std::int64_t>(tensors))));
    }
    if (columns < e.plan.cells.size()) {
        notes.push_back(fmt::format("The table of tensors has the first {} of {} recipes.", columns,
                                    e.plan.cells.size()));
    }
    report::explorer x;
    x.row_title = "tensor";
    for (std::size_t c = 0; c < columns; ++c) x.columns.push_back(e.cell_name(c));
    for (const std::size_t t : rows) {
        x.rows.push_back(e.tensor_name(t));
        x.classes.push_back(e.table.tensors[t].of->role);
    }
    for (const std::size_t t : worst_first) x.first_classes.insert(e.table.tensors[t].of->role);
    if (!x.first_classes.empty()) x.first_words = "operands";
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

// A block may take the largest code only without loss.
double affected_share(const report::record& finding) {
    const bool saturates = report::text_of(finding, "verdict") == "saturates";
    const auto all = report::number_of(finding, "saturated_block_rate");
    return saturates && all ? *all : report::number_of(finding, "ailing_block_rate").value_or(0);
}

// "saturate" for "saturates".
std::string plural_verb(std::string verb) {
    if (verb.ends_with('s')) verb.pop_back();
    return verb;
}

}  // namespace

report::section tensors_section(const evidence& e, const std::vector<std::size_t>& worst_first) {
    report::section s{.heading = "All tensors"};
    s.all = explorer_of(e, worst_first, s.notes);
    return s;
}

std::vector<report::section> finding_sections(const evidence& e) {
    if (!e.examined) return {};
    report::section said{.heading = "Saturated and collapsed blocks"};
    if (e.findings.empty()) {
        said.notes.push_back("No tensor has blocks that saturate, collapse or become zero.");
        return {std::move(said)};
    }
    std::set<std::string> tensors, norms;
    for (const report::record* f : e.findings) {
        const std::string name = report::text_of(*f, "file") + "\n" + report::text_of(*f, "tensor");
        tensors.insert(name);
        if (report::text_of(*f, "role") == "norm") norms.insert(name);
    }
    said.notes.push_back(report::item(
        fmt::format("{} {} blocks that saturate, collapse or become zero{}.",
                    report::plural(tensors.size(), "tensor"), tensors.size() == 1 ? "has" : "have",
                    norms.empty() ? ""
                    : norms.size() == tensors.size()
                        ? tensors.size() == 1 ? "; it is a norm" : "; all are norms"
                        : fmt::format("; {} of them are norms", norms.size()))));
    const report::record& worst = *e.findings.front();
    const auto error = [&](const char* name) {
        return report::significant_text(report::number_of(worst, name).value_or(NAN), 3);
    };
    said.notes.push_back(report::item(fmt::format(
        "Most severe: {} under {}: {} of its blocks {}. {} brings its R-MSE from {} to {}.",
        report::text_of(worst, "tensor"), report::text_of(worst, "recipe"),
        percent(affected_share(worst)), plural_verb(report::text_of(worst, "verdict")),
        report::text_of(worst, "remedy"), error("rmse"), error("remedy_rmse"))));
    report::section s{
        .columns = columns_of({"tensor", "role", "recipe", column_of("verdict", "what happens"),
                               column_of("affected", "blocks\n%", cell::share),
                               column_of("rmse", "R-MSE\nnow", cell::significant, 3),
                               column_of("remedy", "what fixes it"),
                               column_of("remedy_rmse", "R-MSE\nthen", cell::significant, 3)})};
    const std::size_t shown = std::min(shown_findings, e.findings.size());
    for (std::size_t i = 0; i < shown; ++i) {
        s.rows.push_back(*e.findings[i]);
        s.rows.back().emplace_back("affected", affected_share(*e.findings[i]));
    }
    s.notes.push_back(fmt::format(
        "Most severe first{}. Saturates: every element of the block gets the largest code, with or "
        "without loss.",
        shown < e.findings.size() ? fmt::format("; {} of {}", shown, e.findings.size()) : ""));
    return {std::move(said), std::move(s)};
}

}  // namespace mx::pages
