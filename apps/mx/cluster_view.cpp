// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/cluster_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "apps/mx/cluster_words.hpp"
#include "apps/mx/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::app {
namespace {

using pipeline::analysis_request;
using pipeline::cluster_report;
using pipeline::finding;
using report::cell;

constexpr std::size_t shown_findings = 10;

// The tensor's name, with its file where there are several.
std::string name_of(const cluster_report& report, const finding& f) {
    const io::tensor_info& info = f.tensor.info();
    const bool several =
        std::any_of(report.findings.begin(), report.findings.end(),
                    [&](const finding& other) { return other.tensor.info().file != info.file; });
    return several ? fmt::format("{}: {}", info.file, info.name) : info.name;
}

std::size_t tensors_in_danger(const cluster_report& report) {
    std::set<std::pair<const io::reader*, std::size_t>> tensors;
    for (const finding& f : report.findings) tensors.insert({f.tensor.file, f.tensor.index});
    return tensors.size();
}

report::section findings_section(const cluster_report& report, const analysis_request& request,
                                 std::size_t shown) {
    report::section s;
    if (report.findings.empty()) {
        s.heading = "Nothing is in danger";
        for (std::size_t r = 0; r < request.recipes.size(); ++r) {
            std::string text = nearest_words(report.health[r], request.recipes[r]);
            if (!text.empty()) s.notes.push_back("- " + text);
        }
        return s;
    }
    const std::size_t tensors = tensors_in_danger(report);
    s.heading = fmt::format("{} tensor{} in danger", tensors, tensors == 1 ? " is" : "s are");
    if (shown < report.findings.size()) {
        s.heading += fmt::format("; the {} worst of {} findings (--all: every one)", shown,
                                 report.findings.size());
    }
    for (std::size_t i = 0; i < shown; ++i) {
        const finding& f = report.findings[i];
        s.notes.push_back("- " + finding_words(f, name_of(report, f)));
    }
    return s;
}

report::section figures_section(const cluster_report& report, std::size_t shown) {
    report::section s;
    s.heading = "Their blocks";
    s.columns = {{"tensor", "tensor", cell::name},
                 {"recipe", "recipe"},
                 {"blocks", "blocks", cell::integer},
                 {"saturated", "satu-\nrated %", cell::share},
                 {"collapsed", "col-\nlapsed %", cell::share},
                 {"certain", "all\nover %", cell::share},
                 {"zone", "clamp\nzone %", cell::share},
                 {"gain", "gain", cell::fixed, 3},
                 {"spread", "min/max\nmedian", cell::fixed, 3},
                 {"rmse", "R-MSE", cell::significant, 3}};
    for (std::size_t i = 0; i < shown; ++i) {
        const finding& f = report.findings[i];
        const report::value* spread = report::find(f.survey.spread, "p50");
        s.rows.push_back({{"tensor", name_of(report, f)},
                          {"recipe", quantize::to_string(f.recipe)},
                          {"blocks", integer(f.survey.eligible)},
                          {"saturated", f.survey.saturated_block_rate},
                          {"collapsed", f.collapsed_block_rate},
                          {"certain", f.survey.certain_overflow_block_rate},
                          {"zone", f.survey.clamp_zone_block_rate},
                          {"gain", f.survey.saturated_block_gain},
                          {"spread", spread == nullptr ? undefined() : *spread},
                          {"rmse", f.survey.rmse}});
    }
    s.notes = {
        "All over: blocks of which every element overflows, by their smallest and largest "
        "magnitudes alone. Clamp zone: blocks whose maximum overflows. Gain: what the saturated "
        "blocks are multiplied by on average. 2^n is the power of two above a block's maximum."};
    return s;
}

report::section mends_section(const cluster_report& report, std::size_t shown) {
    report::section s;
    s.heading = "What would mend them";
    s.columns = {{"change", "change"},
                 {"bits", "bits", cell::fixed, 2},
                 {"rmse", "R-MSE", cell::significant, 3},
                 {"saturated", "saturated\nblocks %", cell::share},
                 {"choice", ""}};
    s.group_field = "label";
    for (std::size_t i = 0; i < shown; ++i) {
        const finding& f = report.findings[i];
        const std::string label =
            fmt::format("{} under {}", name_of(report, f), quantize::to_string(f.recipe));
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
        100 * pipeline::danger_share)};
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
        const pipeline::recipe_health& h = report.health[r];
        const auto eligible = static_cast<double>(h.eligible);
        s.rows.push_back(
            {{"recipe", quantize::to_string(request.recipes[r])},
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
        100 * pipeline::danger_share)};
    return s;
}

}  // namespace

std::vector<report::section> cluster_sections(const cluster_report& report,
                                              const analysis_request& request, bool all) {
    const std::size_t shown =
        all ? report.findings.size() : std::min(shown_findings, report.findings.size());
    std::vector<report::section> sections{findings_section(report, request, shown)};
    if (shown > 0) {
        sections.push_back(figures_section(report, shown));
        sections.push_back(mends_section(report, shown));
    }
    sections.push_back(health_section(report, request));
    std::vector<std::string> notes = caveats(report, request);
    if (!notes.empty()) sections.push_back({"Notes", {}, {}, {}, std::move(notes)});
    return sections;
}

}  // namespace mx::app
