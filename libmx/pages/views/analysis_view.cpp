// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/analysis_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "libmx/pages/views/analysis_summary.hpp"
#include "libmx/pages/views/analysis_verdict.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::column;

// A tensor with its records, one per recipe.
struct tensor_rows {
    std::vector<std::size_t> records;  // places in the results
    double worst_nrmse = -1;
};

std::vector<tensor_rows> by_tensor(const report::record_list& results) {
    std::vector<tensor_rows> tensors;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const report::record r = results[i];
        if (number(r, "elements") == 0) continue;  // nothing to show; see left_out_section
        const std::string identity = words(r, "file") + '\n' + words(r, "tensor");
        const auto [at, added] = places.emplace(identity, tensors.size());
        if (added) tensors.emplace_back();
        tensor_rows& t = tensors[at->second];
        t.records.push_back(i);
        t.worst_nrmse = std::max(t.worst_nrmse, number(r, "nrmse", -1));
    }
    return tensors;
}

std::size_t shown(const view_options& view, std::size_t tensors, std::size_t recipes) {
    if (view.all) return tensors;
    // About forty lines: what a terminal scrolls past without losing the reader.
    const std::size_t automatic = std::clamp<std::size_t>(40 / recipes, 3, 10);
    return std::min(tensors, view.worst > 0 ? view.worst : automatic);
}

const std::vector<column> figures = {
    {"rmse", "R-MSE", cell::significant},
    {"sqnr_db", "SQNR\ndB", cell::fixed, 2},
    {"max_abs_error", "max\n|error|", cell::significant, 3},
    {"overflow_rate", "over-\nflow %", cell::share},
    {"clamp_rate", "clamp\n%", cell::share},
    {"underflow_rate", "under-\nflow %", cell::share},
    {"saturated_block_rate", "saturated\nblocks %", cell::share},
    {"bits_per_element", "bits", cell::fixed, 2},
};

std::string label_of(const report::record& r, bool with_file) {
    const report::value* shape = report::find(r, "shape");
    const auto* extents = shape == nullptr ? nullptr : std::get_if<report::list>(shape);
    return fmt::format("{}{}  {} {}", with_file ? words(r, "file") + ": " : "", words(r, "tensor"),
                       words(r, "dtype"), extents == nullptr ? "" : report::extents_text(*extents));
}

// A record as a row: with its label, and "exact" where there is no error to take a logarithm of.
report::record row_of(const report::record& r, bool with_file) {
    report::record row = r;
    const report::value* exact = report::find(r, "exact");
    const bool without_error = exact != nullptr && *exact == report::value(true);
    for (auto& [name, v] : row) {
        if (name == "sqnr_db" && without_error) v = text("exact");
    }
    row.emplace_back("label", label_of(r, with_file));
    return row;
}

bool several_files(const report::record_list& results) {
    const std::string first = words(results.front(), "file");
    return std::any_of(results.begin(), results.end(),
                       [&](const report::record& r) { return words(r, "file") != first; });
}

report::section tensor_section(const report::record_list& results,
                               const std::vector<report::record>& summary,
                               const view_options& view) {
    std::vector<tensor_rows> tensors = by_tensor(results);
    const std::size_t count = shown(view, tensors.size(), summary.size());
    const bool files = several_files(results);
    const bool one_recipe = summary.size() == 1;
    report::section s;
    if (count < tensors.size()) {
        std::stable_sort(tensors.begin(), tensors.end(),
                         [](const tensor_rows& a, const tensor_rows& b) {
                             return a.worst_nrmse > b.worst_nrmse;
                         });
        s.heading =
            fmt::format("The {} of {} tensors with the largest relative error (--all: every one)",
                        count, tensors.size());
    } else {
        s.heading = fmt::format("{} tensor{}", count, count == 1 ? "" : "s");
    }
    if (one_recipe) s.heading += " under " + words(summary.front(), "recipe");
    if (one_recipe) {
        s.columns = {{"tensor", "tensor", cell::name}, {"shape", "shape", cell::extents}};
        if (files) s.group_field = "file";
    } else {
        s.columns = {{"recipe", "recipe", cell::text}};
        s.group_field = "label";
    }
    for (const column& c : figures) {
        // Under one recipe the names need the room more.
        if (!(one_recipe && c.field == "max_abs_error")) s.columns.push_back(c);
    }
    for (std::size_t i = 0; i < count; ++i) {
        for (const std::size_t r : tensors[i].records) {
            s.rows.push_back(row_of(results[r], files));
        }
    }
    return s;
}

report::section summary_section(const std::vector<report::record>& summary) {
    return {"Summary: all tensors together",
            {{"recipe", "recipe"},
             {"bits_per_element", "bits", cell::fixed, 2},
             {"sqnr_db", "SQNR\ndB", cell::fixed, 2},
             {"mean_sqnr_db", "mean of\ntensors", cell::fixed, 2},
             {"overflow_rate", "over-\nflow %", cell::share},
             {"clamp_rate", "clamp\n%", cell::share},
             {"underflow_rate", "under-\nflow %", cell::share},
             {"saturated_block_rate", "saturated\nblocks %", cell::share},
             {"worst_sqnr_db", "worst\nSQNR", cell::fixed, 2},
             {"worst_tensor", "in tensor", cell::name}},
            summary,
            {},
            {}};
}

// With --decompose: whose fault the error is, all tensors together.
report::section origin_section(const std::vector<report::record>& summary) {
    return {"Squared error by origin: all tensors together",
            {{"recipe", "recipe"},
             {"sqnr_db", "SQNR\ndB", cell::fixed, 2},
             {"clamp_error_share", "clamp\n%", cell::share},
             {"underflow_error_share", "under-\nflow %", cell::share},
             {"grid_error_share", "grid\n%", cell::share}},
            summary,
            {},
            {}};
}

report::section left_out_section(const analysis::analysis& a) {
    report::section s;
    s.heading = "Left out";
    const auto add = [&](std::string tensor, std::string recipe, std::string reason) {
        s.rows.push_back({{"tensor", std::move(tensor)},
                          {"recipe", std::move(recipe)},
                          {"reason", std::move(reason)}});
    };
    for (const engine::skipped_tensor& t : a.skipped) add(t.tensor, t.recipe, t.reason);
    std::string last;
    for (const report::record& r : a.results) {
        const std::string tensor = words(r, "tensor");
        if (number(r, "elements") == 0 && tensor != last) add(tensor, "", "it has no elements");
        last = tensor;
    }
    s.columns = {{"tensor", "tensor", cell::name}, {"recipe", "recipe"}, {"reason", "why"}};
    return s;
}

}  // namespace

std::vector<report::section> analysis_sections(const analysis::analysis& a,
                                               const std::vector<report::record>& summary,
                                               const view_options& view) {
    std::vector<report::section> sections;
    if (a.results.empty()) {
        sections.push_back({"No numeric tensor to analyse", {}, {}, {}, {}});
    } else {
        sections.push_back(tensor_section(a.results, summary, view));
        sections.push_back(summary_section(summary));
        const bool decomposed = report::find(summary.front(), "grid_error_share") != nullptr;
        if (decomposed) sections.push_back(origin_section(summary));
    }
    report::section left_out = left_out_section(a);
    if (!left_out.rows.empty()) sections.push_back(std::move(left_out));
    std::vector<std::string> verdict = verdict_of(a.results, summary);
    if (!verdict.empty()) sections.push_back({"Verdict", {}, {}, {}, std::move(verdict)});
    return sections;
}

}  // namespace mx::pages
