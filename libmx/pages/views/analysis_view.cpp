// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/analysis_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "libmx/base/decibels.hpp"
#include "libmx/pages/views/tensor_remarks.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/figures.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/compare/ranking.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::pages {
namespace {

constexpr const char* regret_share = "regret_share";

struct accumulator {
    std::shared_ptr<const analysis::named_recipe> under;
    compare::pool all;
    std::int64_t tensors = 0;
    bool decomposed = false, with_regret = false;
    std::array<double, 4> squared_error{};
    std::string worst;
    double worst_nrmse = 0;

    void add(const analysis::result& r) {
        tensors += r.group ? static_cast<std::int64_t>(r.group->members) : 1;
        all.add(r);
        decomposed = decomposed || r.decomposed;
        with_regret = with_regret || r.with_regret;
        for (std::size_t i = 0; i < squared_error.size(); ++i) {
            squared_error[i] += analysis::value_or(r.squared_error[i], 0);
        }
        const double largest = r.group ? r.group->worst_nrmse : r.nrmse;
        if (largest > worst_nrmse) {
            worst_nrmse = largest;
            worst = r.group ? r.group->worst_member : r.of->tensor;
        }
    }

    bool has_error() const { return all.error2 > 0 && all.x2 > 0; }
    double nrmse() const { return has_error() ? *all.nrmse() : 0; }
    double sqnr_db() const { return has_error() ? base::decibels_of_root(nrmse()) : 0; }
    // Part `i` of the squared error, from 1.
    report::value share_of_part(std::size_t i) const {
        return squared_error[0] > 0 ? real(squared_error[i] / squared_error[0]) : undefined();
    }
    std::optional<double> rate(std::string_view name) const {
        return all.rate(compare::rate_index(name));
    }
};

using sum_member = report::declared<accumulator>;
constexpr std::array sum_members = std::to_array<sum_member>({
    {"recipe", "string", "", [](auto& a) { return a.under->name; }},
    {"tensors", "count", "", [](auto& a) { return a.tensors; }},
    {"elements", "count", "", [](auto& a) { return static_cast<std::int64_t>(a.all.elements); }},
    {"bits_per_element", "@members#bits_per_element", "",
     [](auto& a) { return a.all.elements > 0 ? real(a.all.bits / a.all.elements) : undefined(); }},
    {"nrmse", "@members#nrmse", "",
     [](auto& a) { return a.has_error() ? real(a.nrmse()) : undefined(); }},
    {"sqnr_db", "@members#sqnr_db",
     "-10 log10(sum of squared errors / sum of squares), over all tensors (dB)",
     [](auto& a) { return a.has_error() ? real(a.sqnr_db()) : undefined(); }},
    {"mean_sqnr_db", "number?", "mean of the records' SQNR (dB): those of tensors, or of groups",
     [](auto& a) { return a.all.mean_sqnr_db(); }},
    {"overflow_rate", "@members#overflow_rate", "",
     [](auto& a) { return a.rate("overflow_rate"); }},
    {"clamp_rate", "@members#clamp_rate", "", [](auto& a) { return a.rate("clamp_rate"); }},
    {"underflow_rate", "@members#underflow_rate", "",
     [](auto& a) { return a.rate("underflow_rate"); }},
    {"saturated_block_rate", "@members#saturated_block_rate", "",
     [](auto& a) { return a.rate("saturated_block_rate"); }},
});
constexpr std::array origin_members = std::to_array<sum_member>({
    {"clamp_error_share", "@members#clamp_error_share", "",
     [](auto& a) { return a.share_of_part(1); }},
    {"underflow_error_share", "@members#underflow_error_share", "",
     [](auto& a) { return a.share_of_part(2); }},
    {"grid_error_share", "@members#grid_error_share", "",
     [](auto& a) { return a.share_of_part(3); }},
});
constexpr std::array regret_members{sum_member{regret_share, "@members#regret_share", "",
                                               [](auto& a) { return a.rate(regret_share); }}};
constexpr std::array worst_members = std::to_array<sum_member>({
    {"worst_tensor", "string", "the tensor with the lowest SQNR; empty where none has one",
     [](auto& a) { return a.worst; }},
    {"worst_sqnr_db", "number?", "its SQNR (dB)",
     [](auto& a) {
         return a.worst_nrmse > 0 ? real(base::decibels_of_root(a.worst_nrmse)) : undefined();
     }},
});

recipe_summary summary_of(const accumulator& a) {
    recipe_summary s{a.under,
                     a.nrmse(),
                     a.sqnr_db(),
                     a.decomposed,
                     a.all.tensors > 0 && a.all.lossless,
                     report::written(sum_members, a)};
    if (a.decomposed) report::append(s.members, origin_members, a);
    if (a.with_regret) report::append(s.members, regret_members, a);
    report::append(s.members, worst_members, a);
    return s;
}

// A tensor with its results, one per recipe.
struct tensor_rows {
    std::vector<std::size_t> results;  // indices
    // Operands of products before tensors that keep their precision, then by squared error relative
    // to normal data, then by error.
    std::tuple<bool, double, double> harm{false, -1, -1};
};

// Of the recipes in `summary`.
std::vector<tensor_rows> by_tensor(const analysis::result_list& results,
                                   const std::vector<recipe_summary>& summary) {
    std::vector<tensor_rows> tensors;
    std::map<const analysis::named_recipe*, metrics::row> normal;
    using full_name = std::pair<std::string_view, std::string_view>;  // file and tensor
    std::map<full_name, std::size_t> places;
    std::size_t next = 0;
    // The policy that keeps the fewest roles: every other tensor is an operand of products.
    const policy::policy by = policy::find_policy("training");
    for (const analysis::result& r : results) {
        const std::size_t index = next++;
        if (r.elements == 0) continue;  // nothing to show; see left_out_of
        const bool shown = std::ranges::any_of(
            summary, [&](const recipe_summary& one) { return one.under->name == r.under->name; });
        if (!shown) continue;
        const auto [at, added] =
            places.emplace(full_name(r.of->file, r.of->tensor), tensors.size());
        if (added) tensors.emplace_back();
        tensor_rows& t = tensors[at->second];
        t.results.push_back(index);
        const auto known = normal.find(r.under.get());
        const metrics::row& reference =
            known != normal.end()
                ? known->second
                : normal.emplace(r.under.get(), policy::figures_on_normal_data(r.under->recipe))
                      .first->second;
        t.harm = std::max(t.harm,
                          {by.kept(r.of->role) == nullptr, policy::error_over_normal(r, reference),
                           analysis::value_or(r.nrmse, -1)});
    }
    return tensors;
}

std::size_t shown(const analysis_view_options& view, std::size_t tensors, std::size_t recipes) {
    if (view.all) return tensors;
    // About forty lines, a few screens in a terminal.
    const std::size_t automatic = std::clamp<std::size_t>(40 / recipes, 3, 10);
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

report::section tensor_section(const analysis::result_list& results,
                               const std::vector<recipe_summary>& summary,
                               const analysis_view_options& view) {
    std::vector<tensor_rows> tensors = by_tensor(results, summary);
    const std::size_t count = shown(view, tensors.size(), summary.size());
    const bool groups = !results.empty() && results.front().group;
    const std::string_view things = groups ? "record" : "tensor";
    const bool files = several_files(results);
    const bool one_recipe = summary.size() == 1;
    report::section s;
    if (count < tensors.size()) {
        std::ranges::stable_sort(tensors, std::greater{}, &tensor_rows::harm);
        s.heading = fmt::format(
            "The {} of {} {}s with the largest error relative to normal data (--all: every one)",
            count, tensors.size(), things);
    } else {
        s.heading = fmt::format("{} {}{}", count, things, count == 1 ? "" : "s");
    }
    if (one_recipe) s.heading += " under " + summary.front().under->name;
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
        for (const std::size_t r : tensors[i].results) {
            s.rows.push_back(row_of(results[r], files));
        }
    }
    tensor_remarks remarks;
    for (const analysis::result& r : results) remarks.see(r);
    s.notes = remarks.notes();
    return s;
}

report::section summary_section(const std::vector<report::record>& summary) {
    return {.heading = "Summary: all tensors together",
            .columns = columns_of({"recipe", "bits_per_element", "sqnr_db", "mean_sqnr_db",
                                   "overflow_rate", "clamp_rate", "underflow_rate",
                                   "saturated_block_rate", "worst_sqnr_db", "worst_tensor"}),
            .rows = summary};
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

report::section left_out_of(const analysis::analysis& a) {
    report::section s = left_out_section();
    for (const engine::skipped_tensor& t : a.skipped) s.add(t.tensor, t.recipe, t.reason);
    std::string last;
    for (const analysis::result& r : a.results) {
        if (r.elements == 0 && r.of->tensor != last) s.add(r.of->tensor, "", "it has no elements");
        last = r.of->tensor;
    }
    return s;
}

}  // namespace

std::vector<recipe_summary> summarize(const analysis::result_list& results) {
    std::vector<accumulator> sums;
    for (const analysis::result& r : results) {
        auto at = std::ranges::find_if(
            sums, [&](const accumulator& a) { return a.under->name == r.under->name; });
        if (at == sums.end()) {
            at = sums.insert(at, accumulator());
            at->under = r.under;
        }
        at->add(r);
    }
    std::vector<recipe_summary> summary;
    for (const accumulator& a : sums) summary.push_back(summary_of(a));
    return summary;
}

void declare_summary(report::document_schema& to) {
    report::member_list all;
    all.add(sum_members).add_of_some(origin_members).add_of_some(regret_members).add(worst_members);
    to.member({"summary", "[#summary]", "a recipe over all tensors each; mx analyze", false})
        .define("summary", all);
}

std::vector<report::section> analysis_sections(const analysis::analysis& a,
                                               const std::vector<recipe_summary>& summary,
                                               const analysis_view_options& view) {
    std::vector<report::section> sections;
    if (a.results.empty()) {
        sections.push_back({.heading = "No numeric tensor to analyse"});
    } else {
        sections.push_back(tensor_section(a.results, summary, view));
        std::vector<report::record> rows;
        for (const recipe_summary& one : summary) {
            rows.push_back(one.members);
            if (one.exact) show(rows.back(), "sqnr_db", "exact");
        }
        sections.push_back(summary_section(rows));
        if (summary.front().decomposed) sections.push_back(origin_section(rows));
        if (report::find(rows.front(), regret_share) != nullptr) {
            sections.push_back(regret_section(rows));
        }
    }
    put(sections, left_out_of(a));
    return sections;
}

}  // namespace mx::pages
