// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/cluster_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "libmx/engine/roles.hpp"
#include "libmx/pages/views/cluster_words.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using analysis::analysis_request;
using cluster::cluster_report;
using cluster::finding;
using report::cell;

constexpr std::size_t shown_findings = 10;

bool several_files(const cluster_report& report) {
    const auto file = [](const finding& f) { return f.tensor.info().file; };
    return std::ranges::any_of(report.findings, [&](const finding& f) {
        return file(f) != file(report.findings.front());
    });
}

// The findings to show, with the tensor's name and, where there are several, its file.
struct named_finding {
    const finding* f;
    std::string name;
};

std::vector<named_finding> worst_of(const cluster_report& report, bool all) {
    const std::size_t count =
        all ? report.findings.size() : std::min(shown_findings, report.findings.size());
    const bool files = several_files(report);
    std::vector<named_finding> worst;
    for (std::size_t i = 0; i < count; ++i) {
        const finding& f = report.findings[i];
        const io::tensor_info& info = f.tensor.info();
        worst.push_back({&f, files ? fmt::format("{}: {}", info.file, info.name) : info.name});
    }
    return worst;
}

std::size_t tensors_in_danger(const cluster_report& report) {
    std::set<std::pair<const io::reader*, std::size_t>> tensors;
    for (const finding& f : report.findings) tensors.insert({f.tensor.file, f.tensor.index});
    return tensors.size();
}

report::section findings_section(const cluster_report& report, const analysis_request& request,
                                 const std::vector<named_finding>& shown) {
    report::section s;
    if (report.findings.empty()) {
        const bool judged =
            std::ranges::any_of(report.health, [](const auto& h) { return h.judged > 0; });
        s.heading = judged ? "Nothing is in danger"
                           : "Nothing to judge: no block holds two finite elements that are not 0";
        for (std::size_t r = 0; r < request.recipes.size(); ++r) {
            std::string text = nearest_words(report.health[r], request.recipes[r]);
            if (!text.empty()) s.notes.push_back("- " + text);
        }
        return s;
    }
    const std::size_t tensors = tensors_in_danger(report);
    s.heading = fmt::format("{} tensor{} in danger", tensors, tensors == 1 ? " is" : "s are");
    if (shown.size() < report.findings.size()) {
        s.heading += fmt::format("; the {} worst of {} findings (--all: every one)", shown.size(),
                                 report.findings.size());
    }
    for (const named_finding& n : shown) s.notes.push_back("- " + finding_words(*n.f, n.name));
    return s;
}

report::record figures_row(const finding& f, const std::string& name) {
    const report::value* spread = report::find(f.survey.spread, "p50");
    return {{"tensor", name},
            {"recipe", codec::to_string(f.recipe)},
            {"blocks", integer(f.survey.eligible)},
            {"saturated", f.survey.saturated_block_rate},
            {"collapsed", f.collapsed_block_rate},
            {"certain", f.survey.certain_overflow_block_rate},
            {"zone", f.survey.clamp_zone_block_rate},
            {"gain", f.survey.saturated_block_gain},
            {"spread", spread == nullptr ? undefined() : *spread},
            {"rmse", f.survey.rmse}};
}

// The recipes of a tensor stand together, tensors in the order of their worst finding.
report::section figures_section(const std::vector<named_finding>& shown) {
    report::section s;
    s.heading = "Their blocks";
    s.columns = {{"recipe", "recipe"},
                 {"blocks", "blocks", cell::integer},
                 {"saturated", "saturated\n%", cell::share},
                 {"collapsed", "collapsed\n%", cell::share},
                 {"certain", "all\nover %", cell::share},
                 {"zone", "clamp\nzone %", cell::share},
                 {"gain", "gain", cell::fixed, 3},
                 {"spread", "min/max\nmedian", cell::fixed, 3},
                 {"rmse", "R-MSE", cell::significant, 3}};
    s.group_field = "tensor";
    std::map<std::string, std::vector<report::record>> rows;
    for (const named_finding& n : shown) rows[n.name].push_back(figures_row(*n.f, n.name));
    for (const named_finding& n : shown) {
        for (report::record& row : rows[n.name]) s.rows.push_back(std::move(row));
        rows[n.name].clear();
    }
    s.notes = {
        "All over: blocks of which every element overflows, by their smallest and largest "
        "magnitudes alone. Clamp zone: blocks whose maximum overflows. Gain: what the saturated "
        "blocks are multiplied by on average. 2^n is the power of two above a block's maximum."};
    return s;
}

report::section mends_section(const std::vector<named_finding>& shown,
                              const analysis_request& request) {
    report::section s;
    s.heading = "What would mend them";
    s.columns = {{"change", "change"},
                 {"bits", "bits", cell::fixed, 2},
                 {"rmse", "R-MSE", cell::significant, 3},
                 {"saturated", "saturated\nblocks %", cell::share},
                 {"choice", ""}};
    s.group_field = "label";
    for (const named_finding& n : shown) {
        const finding& f = *n.f;
        const std::string label = fmt::format("{} under {}", n.name, codec::to_string(f.recipe));
        s.rows.push_back({{"label", label},
                          {"change", text("(none)")},
                          {"bits", f.survey.bits_per_element},
                          {"rmse", f.survey.rmse},
                          {"saturated", f.survey.saturated_block_rate},
                          {"choice", text("")}});
        for (std::size_t m = 0; m < f.mends.size(); ++m) {
            s.rows.push_back({{"label", label},
                              {"change", f.mends[m].change},
                              {"bits", f.mends[m].bits_per_element},
                              {"rmse", f.mends[m].rmse},
                              {"saturated", f.mends[m].saturated_block_rate},
                              {"choice", text(m == f.mend ? "recommended" : "")}});
        }
    }
    s.notes = {fmt::format(
        "Recommended: of the recipes under which less than {:.0f} % of the blocks suffer so, with "
        "less R-MSE, the one with the fewest bits, then with the least R-MSE; bf16 when none does.",
        100 * cluster::danger_share)};
    const bool kept = std::ranges::any_of(shown, [&](const named_finding& n) {
        return engine::keeps_precision(request.roles.role_of(n.f->tensor.info()));
    });
    if (kept) {
        s.notes.push_back(
            "Norms, biases and routers are best kept in the precision they are stored in: mx "
            "report and mx plan do.");
    }
    return s;
}

report::section health_section(const cluster_report& report, const analysis_request& request) {
    report::section s;
    s.heading = "All tensors";
    s.columns = {{"recipe", "recipe"},
                 {"tensors", "tensors", cell::integer},
                 {"judged", "with blocks\nto judge", cell::integer},
                 {"danger", "in\ndanger", cell::integer},
                 {"saturating", "with saturated\nblocks", cell::integer},
                 {"saturated", "saturated\nblocks %", cell::share},
                 {"nearest", "closest of the rest", cell::name},
                 {"nearness", "at %", cell::share}};
    for (std::size_t r = 0; r < request.recipes.size(); ++r) {
        const cluster::recipe_health& h = report.health[r];
        const auto eligible = static_cast<double>(h.eligible);
        s.rows.push_back(
            {{"recipe", codec::to_string(request.recipes[r])},
             {"tensors", integer(h.tensors)},
             {"judged", integer(h.judged)},
             {"danger", integer(h.in_danger)},
             {"saturating", integer(h.saturating_tensors)},
             {"saturated",
              h.eligible == 0 ? undefined() : real(static_cast<double>(h.saturated) / eligible)},
             {"nearest", h.nearest ? text(h.nearest_tensor) : undefined()},
             {"nearness", h.nearest ? real(h.nearest->nearness) : undefined()}});
    }
    s.notes = {fmt::format(
        "In danger: tensors of which {:.0f} % of the blocks or more saturate, die or collapse. "
        "Closest: the block whose smallest magnitude comes nearest to the one from which on all "
        "its "
        "elements would take the largest code.",
        100 * cluster::danger_share)};
    return s;
}

}  // namespace

std::vector<report::section> cluster_sections(const cluster_report& report,
                                              const analysis_request& request, bool all) {
    const std::vector<named_finding> shown = worst_of(report, all);
    std::vector<report::section> sections{findings_section(report, request, shown)};
    if (!shown.empty()) {
        sections.push_back(figures_section(shown));
        sections.push_back(mends_section(shown, request));
    }
    sections.push_back(health_section(report, request));
    std::vector<std::string> notes = caveats(report, request);
    if (!notes.empty()) sections.push_back({"Notes", {}, {}, {}, std::move(notes)});
    return sections;
}

}  // namespace mx::pages
