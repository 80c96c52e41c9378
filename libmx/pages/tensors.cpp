// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "libmx/pages/sections.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t fewest_rows = 10;
/// Limit of values on a page for sorting and filtering: some megabytes.
constexpr std::size_t most_values = 1'200'000;
constexpr std::size_t most_columns = 32;

// The rows and columns of the explorer, reduced if a page could not hold all.
report::explorer explorer_of(const review_data& e, const std::vector<std::size_t>& worst_first,
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

}  // namespace

report::section tensors_section(const review_data& e, const std::vector<std::size_t>& worst_first) {
    report::section s{.heading = "All tensors"};
    s.all = explorer_of(e, worst_first, s.notes);
    return s;
}

}  // namespace mx::pages
