// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/analysis_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "libmx/analysis/results_table.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/tensor_remarks.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/figures.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::pages {
namespace {

constexpr const char* regret_share = "regret_share";

// A tensor of a table, and those of its recipes that are shown.
struct tensor_rows {
    std::size_t tensor = 0;
    std::vector<std::size_t> recipes;
    // Operands of products before tensors that keep their precision, then by squared error relative
    // to normal data, then by error.
    std::tuple<bool, double, double> harm{false, -1, -1};
};

// The recipes of the tables.
using recipe_names = std::set<std::string, std::less<>>;

std::vector<tensor_rows> by_tensor(const analysis::results_table& table,
                                   const recipe_names& recipes) {
    std::map<std::size_t, metrics::row> normal;
    for (std::size_t c = 0; c < table.recipes.size(); ++c) {
        const auto& [name, recipe] = table.recipes[c];
        if (recipes.contains(name)) normal.emplace(c, policy::figures_on_normal_data(recipe));
    }
    std::vector<tensor_rows> tensors;
    // The policy that keeps the fewest roles: every other tensor is an operand of products.
    const policy::policy by = policy::find_policy("training");
    for (std::size_t i = 0; i < table.tensors.size(); ++i) {
        tensor_rows t{i, {}};
        for (const auto& [c, reference] : normal) {
            const analysis::result r = table.of(i, c);
            if (r.elements == 0) continue;  // nothing to show; see left_out_of
            t.recipes.push_back(c);
            t.harm = std::max(
                t.harm, {by.kept(r.of->role) == nullptr, policy::error_over_normal(r, reference),
                         analysis::value_or(r.nrmse, -1)});
        }
        if (!t.recipes.empty()) tensors.push_back(std::move(t));
    }
    return tensors;
}

std::size_t shown(const analysis_view_options& view, std::size_t tensors, std::size_t recipes) {
    if (view.all) return tensors;
    // About forty lines, a few screens in a terminal.
    const std::size_t automatic =
        std::clamp<std::size_t>(40 / std::max<std::size_t>(1, recipes), 3, 10);
    return std::min(tensors, view.worst > 0 ? view.worst : automatic);
}

// A result as a row: with its label, and "exact" if the error is zero and has no logarithm.
report::record row_of(const analysis::result& r, bool with_file) {
    const analysis::tensor_identity& t = *r.of;
    report::record row = analysis::record_of(r);
    if (r.exact == 1) show(row, "sqnr_db", "exact");
    const bool several = r.group && r.group->members > 1;
    if (r.group) {
        show(row, "worst_member", several ? short_member(t.tensor, r.group->worst_member) : "");
    }
    row.emplace_back("label", fmt::format("{}{}  {}{} {}", with_file ? t.file + ": " : "", t.tensor,
                                          several ? fmt::format("{} of ", r.group->members) : "",
                                          t.dtype, tensor::to_string(t.shape)));
    return row;
}

bool several_files(const analysis::result_list& results) {
    if (results.empty()) return false;
    const std::string first = results.front().of->file;
    return std::ranges::any_of(results,
                               [&](const analysis::result& r) { return r.of->file != first; });
}

report::section tensor_section(const analysis::result_list& results, const recipe_names& recipes,
                               const analysis_view_options& view) {
    analysis::results_table table;
    table.add(results);
    std::vector<tensor_rows> tensors = by_tensor(table, recipes);
    const std::size_t count = shown(view, tensors.size(), recipes.size());
    const bool groups = !results.empty() && results.front().group;
    const std::string_view things = groups ? "record" : "tensor";
    const bool files = several_files(results);
    const bool one_recipe = recipes.size() == 1;
    report::section s;
    if (count < tensors.size()) {
        std::ranges::stable_sort(tensors, std::greater{}, &tensor_rows::harm);
        s.heading = fmt::format(
            "The {} of {} {}s with the largest error relative to normal data (--all: every one)",
            count, tensors.size(), things);
    } else {
        s.heading = fmt::format("{} {}{}", count, things, count == 1 ? "" : "s");
    }
    if (one_recipe) s.heading += " under " + *recipes.begin();
    if (one_recipe) {
        s.columns = columns_of({"tensor", "shape"});
        if (files) s.group_field = "file";
    } else {
        s.columns = columns_of({"recipe"});
        s.group_field = "label";
    }
    for (const report::column& c :
         columns_of({"rmse", "sqnr_db", "max_abs_error", "overflow_rate", "clamp_rate",
                     "underflow_rate", "saturated_block_rate", "bits_per_element"})) {
        // With a single recipe, names, including those of the worst, use the free width.
        if (!((one_recipe || groups) && c.field == "max_abs_error")) s.columns.push_back(c);
    }
    if (groups) {
        for (report::column& c : columns_of({"worst_member_sqnr_db", "worst_member"})) {
            s.columns.push_back(std::move(c));
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        for (const std::size_t c : tensors[i].recipes) {
            s.rows.push_back(row_of(table.of(tensors[i].tensor, c), files));
        }
    }
    tensor_remarks remarks;
    for (const analysis::result& r : results) remarks.see(r);
    s.notes = remarks.notes();
    return s;
}

// At most three tensors that hold nearly all squares in few elements, such as masks of -1e5;
// empty: none.
std::string concentration_text(const analysis::result_list& results) {
    struct part {
        std::string name;
        double squares, elements;
    };
    constexpr double nearly_all = 0.99, few = 0.01;
    constexpr std::size_t most = 3;
    std::vector<part> parts;
    std::set<const analysis::tensor_identity*> seen;
    double squares = 0, elements = 0;
    for (const analysis::result& r : results) {
        if (!seen.insert(r.of.get()).second || std::isnan(r.rms)) continue;
        parts.push_back({r.of->tensor, r.counted() * r.rms * r.rms, r.counted()});
        squares += parts.back().squares;
        elements += parts.back().elements;
    }
    std::ranges::stable_sort(parts, std::greater{}, &part::squares);
    std::vector<std::string> names;
    double held = 0, in = 0;
    for (const part& p : parts) {
        if (held >= nearly_all * squares || names.size() == most) break;
        names.push_back(p.name);
        held += p.squares;
        in += p.elements;
    }
    if (!(held >= nearly_all * squares) || !(in <= few * elements) || names.empty()) return {};
    return fmt::format(
        "{} % of the squares of all tensors are those of {}, in {} % of the elements: SQNR over "
        "all tensors says little about the others. Mean SQNR is over tensors.",
        report::percent_text(held / squares), base::listed(names),
        report::percent_text(in / elements));
}

report::section summary_section(const std::vector<report::record>& summary,
                                const analysis::result_list& results) {
    report::section s{
        .heading = "Summary: all tensors together",
        .columns = columns_of({"recipe", "bits_per_element", "sqnr_db", "mean_sqnr_db",
                               "overflow_rate", "clamp_rate", "underflow_rate",
                               "saturated_block_rate", "worst_sqnr_db", "worst_tensor"}),
        .rows = summary};
    if (std::string text = concentration_text(results); !text.empty()) s.notes = {std::move(text)};
    return s;
}

// With --decompose: the sources of the error over all tensors.
report::section origin_section(const std::vector<report::record>& summary) {
    return {.heading = "Squared error by origin: all tensors together",
            .columns = columns_of({"recipe", "sqnr_db", "clamp_error_share",
                                   "underflow_error_share", "grid_error_share"}),
            .rows = summary};
}

// With --regret: the saving of the best scale for every block.
report::section regret_section(const std::vector<report::record>& summary) {
    return {.heading = "Regret: the share of the squared error that the best scales would save",
            .columns = columns_of({"recipe", "bits_per_element", "sqnr_db", regret_share}),
            .rows = summary};
}

report::section left_out_of(const result_set& of) {
    report::section s = left_out_section();
    for (const report::record& r : report::records_in(*of.tail, "skipped")) {
        s.add(report::text_of(r, "tensor"), report::text_of(r, "recipe"),
              report::text_of(r, "reason"));
    }
    std::string last;
    for (const analysis::result& r : *of.results) {
        if (r.elements == 0 && r.of->tensor != last) s.add(r.of->tensor, "", "it has no elements");
        last = r.of->tensor;
    }
    return s;
}

}  // namespace

std::vector<report::section> analysis_view(const result_set& of,
                                           const analysis_view_options& view) {
    std::vector<report::section> sections;
    if (of.results->empty()) {
        sections.push_back({.heading = "No numeric tensor to analyse"});
    } else {
        std::vector<report::record> rows = report::records_in(*of.tail, "summary");
        std::erase_if(rows, [&](const report::record& r) {
            return std::ranges::find(view.hidden, report::text_of(r, "recipe")) !=
                   view.hidden.end();
        });
        recipe_names recipes;
        for (report::record& r : rows) {
            recipes.insert(report::text_of(r, "recipe"));
            if (is_true(r, "exact")) show(r, "sqnr_db", "exact");
        }
        const auto has = [&](const char* member) {
            return !rows.empty() && report::find(rows.front(), member) != nullptr;
        };
        sections.push_back(tensor_section(*of.results, recipes, view));
        sections.push_back(summary_section(rows, *of.results));
        if (has("clamp_error_share")) sections.push_back(origin_section(rows));
        if (has(regret_share)) sections.push_back(regret_section(rows));
    }
    put(sections, left_out_of(of));
    return sections;
}

}  // namespace mx::pages
