// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/cluster_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libmx/engine/saturation_zone.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using analysis::analysis_request;
using cluster::bad_block;
using cluster::cluster_report;
using cluster::defect;
using cluster::finding;
using report::cell;
using report::plural;

std::string figure(const report::value& v) {
    const auto* d = std::get_if<double>(&v);
    return d == nullptr ? std::string("-") : report::significant_text(*d, 3);
}

// The recipe with its scale rule, which is the subject of the sentence, even if the canonical
// spelling omits it.
std::string spelled(const codec::recipe& r) {
    std::string text = codec::to_string(r);
    if (text.find("scale=") != std::string::npos) return text;
    const std::size_t end = text.find(':');
    const std::string rest = end == std::string::npos ? "" : "," + text.substr(end + 1);
    return fmt::format("{}:scale={}{}", text.substr(0, end), r.rule->name, rest);
}

std::optional<engine::saturation_zone> zone_of(const codec::recipe& r) {
    const auto judge = engine::block_judge::of(r);
    return judge ? judge->zone() : std::nullopt;
}

// "[0.844,1)*2^n", without a blank at which a line could break.
std::string interval(const engine::saturation_zone& z) {
    return fmt::format("{}{:.3g},{:.3g})*2^n", z.including ? '[' : '(', z.from, z.to);
}

std::string what_happens(const finding& f) {
    switch (f.what) {
        case defect::saturation: {
            const auto zone = zone_of(f.recipe);
            const std::string gain = figure(f.survey.saturated_block_gain);
            if (!zone) return fmt::format("every value takes the largest code, a gain of {}", gain);
            return fmt::format("every value in {} becomes {:.3g}*2^n, a gain of {}",
                               interval(*zone), zone->becomes, gain);
        }
        case defect::death:
            return "every value becomes 0";
        case defect::collapse:
            return "all values get the same magnitude";
    }
    return {};
}

// "block 3: 0.86 to 0.998 become 0.875", for the worst block of the finding.
std::string example(const finding& f) {
    for (const bad_block& b : f.survey.worst) {
        if (b.what != f.what || !b.becomes) continue;
        if (b.least == b.largest) {
            return fmt::format(" (block {}: {:.4g} becomes {:.4g})", b.index, b.least, *b.becomes);
        }
        return fmt::format(" (block {}: {:.4g} to {:.4g} become {:.4g})", b.index, b.least,
                           b.largest, *b.becomes);
    }
    return {};
}

std::string remedy(const finding& f) {
    const cluster::measured_remedy& m = f.remedies[f.chosen];
    if (m.recipe == engine::bf16_name) {
        return fmt::format("of the remedies tried only bf16 helps, with R-MSE {} instead of {}",
                           figure(m.rmse), figure(f.survey.rmse));
    }
    return fmt::format("{} brings R-MSE from {} to {}", m.change, figure(f.survey.rmse),
                       figure(m.rmse));
}

// "5 of 8 blocks saturate", "31 of 32 blocks saturate, 10 with elements beyond the largest value":
// a block may take the largest code only without loss.
std::string affected(const finding& f) {
    const std::uint64_t defective = f.survey.defective[static_cast<std::size_t>(f.what)];
    const cluster::defect_description& verb = cluster::description_of(f.what);
    const bool more = f.what == defect::saturation && f.survey.saturated > defective;
    const std::uint64_t blocks = more ? f.survey.saturated : defective;
    return fmt::format(
        "{} of {} {}{}", blocks, plural(f.survey.eligible, "block"),
        blocks == 1 ? verb.one : verb.many,
        more ? fmt::format(", {} with elements beyond the largest value", defective) : "");
}

// "norm.weight under mxfp8: 5 of 8 blocks saturate: every value in [0.844,1)*2^n becomes
// 0.875*2^n, a gain of 0.93 (...); scale=rceil brings R-MSE from 0.066 to 0.011."
std::string finding_text(const finding& f, const std::string& tensor) {
    return fmt::format("{} under {}: {}: {}{}; {}.", tensor, spelled(f.recipe), affected(f),
                       what_happens(f), example(f), remedy(f));
}

// "Closest under mxfp8: block 3 of norm.weight, ..."; empty where no block was judged.
std::string nearest_text(const cluster::recipe_summary& h, const codec::recipe& r) {
    if (!h.nearest) return {};
    const cluster::near_block& b = *h.nearest;
    return fmt::format(
        "Nearest to saturating under {}: block {} of {}, magnitudes {:.4g} to {:.4g}; its smallest "
        "is at {} % of the threshold.",
        spelled(r), b.index, h.nearest_tensor, b.least, b.largest,
        report::percent_text(b.nearness));
}

// What the findings do not cover: norms stored as gamma - 1, and tensors that could not be judged
// or were left out.
report::notes caveats(const cluster_report& report, const analysis_request& request) {
    report::notes notes;
    const cluster::norm_centres& n = report.norms;
    if (request.norm_bias == 0 && n.look_like_gamma_minus_one()) {
        const bool one = n.around_zero.size() == 1;
        notes.push_back(report::item(fmt::format(
            "{} of {} ({}{}) {} around 0 instead of 1, like gamma - 1: models that store norms "
            "like this add 1 when they run. Rerun with --norm-bias 1 to measure the actual gains.",
            n.around_zero.size(), plural(n.norms, "norm tensor"), n.around_zero.front(),
            one ? "" : ", ...", one ? "lies" : "lie")));
    }
    std::set<std::string> tensors;
    for (const cluster::unjudged_tensor& u : report.unjudged) tensors.insert(u.tensor);
    if (!tensors.empty()) {
        notes.push_back(report::item(
            fmt::format("{} could not be judged, because none of {} blocks has two non-zero "
                        "elements ({}{}): axis=flat, as in -r {},axis=flat, uses blocks of the "
                        "flattened tensor instead.",
                        plural(tensors.size(), "tensor"), tensors.size() == 1 ? "its" : "their",
                        report.unjudged.front().tensor, tensors.size() == 1 ? "" : ", ...",
                        report.unjudged.front().recipe)));
    }
    for (const engine::skipped_tensor& s : report.skipped) {
        notes.push_back(
            report::item(fmt::format("Left out: {}{}{}: {}", s.tensor,
                                     s.recipe.empty() ? "" : " under ", s.recipe, s.reason)));
    }
    return notes;
}

constexpr std::size_t listed_findings = 10, listed_groups = 10;

bool several_files(const cluster_report& report) {
    const auto file = [](const finding& f) { return f.tensor.info().file; };
    return std::ranges::any_of(report.findings, [&](const finding& f) {
        return file(f) != file(report.findings.front());
    });
}

// The findings to show, with the tensor's name and, if there are several files, its file.
struct named_finding {
    const finding* f;
    std::string name;
};

std::vector<named_finding> worst_of(const cluster_report& report, bool all) {
    const std::size_t count =
        all ? report.findings.size() : std::min(listed_findings, report.findings.size());
    const bool files = several_files(report);
    std::vector<named_finding> worst;
    for (std::size_t i = 0; i < count; ++i) {
        const finding& f = report.findings[i];
        const io::tensor_info& info = f.tensor.info();
        worst.push_back({&f, files ? fmt::format("{}: {}", info.file, info.name) : info.name});
    }
    return worst;
}

// "2 tensors, all of them norms, have blocks that saturate, collapse or become zero".
std::string danger_text(const cluster_report& report, const engine::role_finder& roles) {
    std::map<std::pair<const io::reader*, std::size_t>, bool> norms;
    for (const finding& f : report.findings) {
        norms[{f.tensor.file, f.tensor.index}] = roles.role_of(f.tensor.info()) == "norm";
    }
    const auto of_norms = static_cast<std::size_t>(
        std::ranges::count_if(norms, [](const auto& t) { return t.second; }));
    const std::string which = of_norms == 0 ? ""
                              : of_norms < norms.size()
                                  ? fmt::format(", {} of them norms,", of_norms)
                              : norms.size() == 1 ? ", a norm,"
                                                  : ", all of them norms,";
    return fmt::format("{}{} {} blocks that saturate, collapse or become zero",
                       plural(norms.size(), "tensor"), which, norms.size() == 1 ? "has" : "have");
}

report::section findings_section(const cluster_report& report, const analysis_request& request,
                                 const std::vector<named_finding>& shown) {
    report::section s;
    if (report.findings.empty()) {
        const bool judged =
            std::ranges::any_of(report.summaries, [](const auto& h) { return h.judged > 0; });
        s.heading = judged ? "No tensor has blocks that saturate, collapse or become zero"
                           : "Nothing to judge: no block has two finite, non-zero elements";
        for (std::size_t r = 0; r < request.recipes.size(); ++r) {
            std::string text = nearest_text(report.summaries[r], request.recipes[r]);
            if (!text.empty()) s.notes.push_back(report::item(text));
        }
        return s;
    }
    s.heading = danger_text(report, request.roles);
    if (shown.size() < report.findings.size()) {
        s.heading += fmt::format("; the {} worst of {} findings (--all: every one)", shown.size(),
                                 report.findings.size());
    }
    for (const named_finding& n : shown)
        s.notes.push_back(report::item(finding_text(*n.f, n.name)));
    return s;
}

// The recipes of a tensor are adjacent; tensors are in the order of their worst finding.
report::section figures_section(const std::vector<named_finding>& shown) {
    report::section s{
        .heading = "Their blocks",
        .columns = columns_of(
            {"recipe", "blocks", column_of("saturated", "saturated\n%", cell::share),
             column_of("collapsed", "collapsed\n%", cell::share),
             column_of("certain", "all\nover %", cell::share),
             column_of("zone", "clamp\nzone %", cell::share), column_of("gain", 3),
             column_of("spread", "min/max\nmedian", cell::fixed, 3), column_of("rmse", 3)}),
        .group_field = "tensor"};
    std::map<std::string, std::vector<const finding*>> of_tensor;
    for (const named_finding& n : shown) of_tensor[n.name].push_back(n.f);
    for (const named_finding& n : shown) {
        for (const finding* f : std::exchange(of_tensor[n.name], {})) {
            const cluster::block_survey& b = f->survey;
            const report::value* spread = report::find(b.spread, "p50");
            s.add_to(n.name, codec::to_string(f->recipe), b.eligible, b.saturated_block_rate,
                     b.collapsed_block_rate, b.certain_overflow_block_rate, b.clamp_zone_block_rate,
                     b.saturated_block_gain, spread == nullptr ? undefined() : *spread, b.rmse);
        }
    }
    s.notes = {
        "Saturated: every element gets the largest code, with or without loss. All over: every "
        "element is beyond the largest value. Clamp zone: the maximum is. Gain: the mean factor of "
        "the saturated blocks. 2^n is the power of two above a block's maximum."};
    return s;
}

report::section remedies_section(const std::vector<named_finding>& shown) {
    report::section s{
        .heading = "Remedies",
        .columns = columns_of({"change", column_of("bits", "bits"), column_of("rmse", 3),
                               column_of("ailing", "affected\nblocks %", cell::share),
                               column_of("choice", "")}),
        .group_field = "label"};
    for (const named_finding& n : shown) {
        const finding& f = *n.f;
        const std::string label = fmt::format("{} under {}", n.name, codec::to_string(f.recipe));
        s.add_to(label, "(none)", f.survey.bits_per_element, f.survey.rmse, f.survey.share(f.what),
                 "");
        for (std::size_t i = 0; i < f.remedies.size(); ++i) {
            const cluster::measured_remedy& m = f.remedies[i];
            s.add_to(label, m.change, m.bits_per_element, m.rmse,
                     m.recipe == engine::bf16_name
                         ? undefined()
                         : real(m.defective_share[static_cast<std::size_t>(f.what)]),
                     i == f.chosen ? "fewest bits" : "");
        }
    }
    s.notes = {fmt::format(
                   "Affected: blocks with the defect of the finding; of saturated ones, those with "
                   "elements beyond the largest value. Fewest bits: among the recipes with less "
                   "than {:.0f} % of such blocks and a smaller R-MSE, the one with the fewest "
                   "bits, then the least R-MSE; bf16 if there is none.",
                   100 * cluster::danger_share),
               "The policy decides whether to quantize a tensor at all (mx explain policy): norms, "
               "biases and routers keep their stored precision."};
    return s;
}

report::section summary_section(const cluster_report& report, const analysis_request& request) {
    report::section s{
        .heading = "All tensors",
        .columns = columns_of({"recipe", "tensors",
                               column_of("judged", "with blocks\nto judge", cell::integer),
                               column_of("danger", "in\ndanger", cell::integer),
                               column_of("saturating", "with saturated\nblocks", cell::integer),
                               column_of("saturated", "saturated\nblocks %", cell::share),
                               column_of("nearest", "nearest to saturating", cell::name),
                               column_of("nearness", "% of\nthreshold", cell::share)})};
    for (std::size_t r = 0; r < request.recipes.size(); ++r) {
        const cluster::recipe_summary& h = report.summaries[r];
        const report::value none;
        s.add(codec::to_string(request.recipes[r]), h.tensors, h.judged, h.in_danger,
              h.saturating_tensors, report::share(h.saturated, h.eligible),
              h.nearest ? text(h.nearest_tensor) : none,
              h.nearest ? real(h.nearest->nearness) : none);
    }
    s.notes = {fmt::format(
        "In danger: tensors with {:.0f} % or more of blocks that saturate, die or collapse. "
        "Threshold: the smallest magnitude of a block from which all its elements get the largest "
        "code; of the blocks that do not saturate, the nearest to it.",
        100 * cluster::danger_share)};
    return s;
}

// Groups by the share of their tensors that are in danger; empty where there are none.
report::section groups_section(const cluster_report& report, bool all) {
    std::vector<std::pair<double, report::record>> found;
    for (const report::record& r : report.results) {
        const double in_danger = report::number_of(r, "members_in_danger").value_or(0);
        const double members = report::number_of(r, "members").value_or(0);
        if (members > 1 && in_danger > 0) found.emplace_back(in_danger / members, r);
    }
    std::ranges::stable_sort(found, std::greater(), [](const auto& f) { return f.first; });
    report::section s{
        .heading = "Groups with such tensors",
        .columns = columns_of(
            {column_of("tensor", "group"), "recipe", "members",
             column_of("members_in_danger", "in\ndanger", cell::integer), "saturated_block_rate",
             column_of("most_saturated_block_rate", "of the worst\n%", cell::share),
             column_of("most_saturated_member", "the worst", cell::name)})};
    if (!all && found.size() > listed_groups) {
        s.heading +=
            fmt::format("; the {} worst of {} (--all: every one)", listed_groups, found.size());
        found.resize(listed_groups);
    }
    for (auto& [share, r] : found) s.rows.push_back(std::move(r));
    return s;
}

}  // namespace

std::vector<report::section> cluster_sections(const cluster_report& report,
                                              const analysis_request& request, bool all) {
    const std::vector<named_finding> shown = worst_of(report, all);
    std::vector<report::section> sections{findings_section(report, request, shown)};
    if (!shown.empty()) {
        sections.push_back(figures_section(shown));
        sections.push_back(remedies_section(shown));
    }
    put(sections, groups_section(report, all));
    sections.push_back(summary_section(report, request));
    put(sections, {.heading = "Notes", .notes = caveats(report, request)});
    return sections;
}

}  // namespace mx::pages
