// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/cluster_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libmx/engine/saturation_zone.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/cluster/diagnose.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::plural;
using report::record;
using report::records_in;
using report::section;
using report::text_of;
using report::value_of;

constexpr std::size_t listed_findings = 10, listed_groups = 10;

// A finding, or a remedy that was tried.
std::string figure(const record& of, const char* name) {
    const auto x = report::number_of(of, name);
    return x ? report::significant_text(*x, 3) : "-";
}

// The recipe with its scale rule, which is the subject of the sentence, even if the canonical
// spelling omits it.
std::string spelled(const std::string& recipe) {
    const auto known = recipe_named(recipe);
    return known ? codec::to_string(*known, "scale") : recipe;
}

std::optional<engine::saturation_zone> zone_of(const std::string& recipe) {
    const auto known = recipe_named(recipe);
    const auto judge = known ? engine::block_judge::of(*known) : std::nullopt;
    return judge ? judge->zone() : std::nullopt;
}

// "[0.844,1)*2^n", without a blank at which a line could break.
std::string interval(const engine::saturation_zone& z) {
    return fmt::format("{}{:.3g},{:.3g})*2^n", z.including ? '[' : '(', z.from, z.to);
}

bool saturates(const record& f) { return text_of(f, "verdict") == "saturates"; }

std::string what_happens(const record& f) {
    if (saturates(f)) {
        const auto zone = zone_of(text_of(f, "recipe"));
        const std::string gain = figure(f, "saturated_block_gain");
        if (!zone) return fmt::format("every value takes the largest code, a gain of {}", gain);
        return fmt::format("every value in {} becomes {:.3g}*2^n, a gain of {}", interval(*zone),
                           zone->becomes, gain);
    }
    return text_of(f, "verdict") == "dies" ? "every value becomes 0"
                                           : "all values get the same magnitude";
}

// "block 3: 0.86 to 0.998 become 0.875", for the worst block of the finding.
std::string example(const record& f) {
    for (const record& b : records_in(f, "worst_blocks")) {
        const auto becomes = report::number_of(b, "becomes");
        if (text_of(b, "verdict") != text_of(f, "verdict") || !becomes) continue;
        const double least = number_or(b, "min", 0), largest = number_or(b, "max", 0);
        const std::uint64_t index = count_of(b, "block");
        if (least == largest) {
            return fmt::format(" (block {}: {:.4g} becomes {:.4g})", index, least, *becomes);
        }
        return fmt::format(" (block {}: {:.4g} to {:.4g} become {:.4g})", index, least, largest,
                           *becomes);
    }
    return {};
}

std::string remedy(const record& f) {
    if (text_of(f, "remedy") == engine::bf16_name) {
        return fmt::format("of the remedies tried only bf16 helps, with R-MSE {} instead of {}",
                           figure(f, "remedy_rmse"), figure(f, "rmse"));
    }
    std::string change, other;
    for (const record& m : records_in(f, "remedies")) {
        if (text_of(m, "recipe") != text_of(f, "remedy")) continue;
        change = text_of(m, "change");
        if (const auto share = report::number_of(m, "other_block_rate")) {
            other = fmt::format(", but {} % of the blocks {} then", report::percent_text(*share),
                                cluster::description_of(text_of(m, "other_verdict")).many);
        }
    }
    return fmt::format("{} brings R-MSE from {} to {}{}", change, figure(f, "rmse"),
                       figure(f, "remedy_rmse"), other);
}

// "5 of 8 blocks saturate", "31 of 32 blocks saturate, 10 with elements beyond the largest value":
// a block may take the largest code only without loss.
std::string affected(const record& f) {
    const std::uint64_t defective = count_of(f, "ailing_blocks");
    const bool more = saturates(f) && count_of(f, "saturated_blocks") > defective;
    const std::uint64_t blocks = more ? count_of(f, "saturated_blocks") : defective;
    const cluster::defect_description& verb = cluster::description_of(text_of(f, "verdict"));
    return fmt::format(
        "{} of {} {}{}", blocks, plural(count_of(f, "eligible_blocks"), "block"),
        blocks == 1 ? verb.one : verb.many,
        more ? fmt::format(", {} with elements beyond the largest value", defective) : "");
}

// "norm.weight under mxfp8: 5 of 8 blocks saturate: every value in [0.844,1)*2^n becomes
// 0.875*2^n, a gain of 0.93 (...); scale=rceil brings R-MSE from 0.066 to 0.011."
std::string finding_text(const record& f, const std::string& tensor) {
    return fmt::format("{} under {}: {}: {}{}; {}.", tensor, spelled(text_of(f, "recipe")),
                       affected(f), what_happens(f), example(f), remedy(f));
}

// "Closest under mxfp8: block 3 of norm.weight, ..."; empty where no block was judged.
std::string nearest_text(const record& health) {
    const record* b = report::member<record>(health, "nearest");
    if (b == nullptr) return {};
    return fmt::format(
        "Nearest to saturating under {}: block {} of {}, magnitudes {:.4g} to {:.4g}; its smallest "
        "is at {} % of the threshold.",
        spelled(text_of(health, "recipe")), count_of(*b, "block"), text_of(*b, "tensor"),
        number_or(*b, "min", 0), number_or(*b, "max", 0),
        report::percent_text(number_or(*b, "nearness", 0)));
}

// What the findings do not cover: norms stored as gamma - 1, and tensors that could not be judged
// or were left out.
report::notes caveats(const record& tail) {
    report::notes notes;
    const auto* around_zero = report::member<report::list>(tail, "norms_around_zero");
    if (is_true(tail, "needs_norm_bias") && around_zero != nullptr && !around_zero->empty()) {
        const bool one = around_zero->size() == 1;
        const auto* first = std::get_if<std::string>(&around_zero->front());
        notes.push_back(report::item(fmt::format(
            "{} of {} ({}{}) {} around 0 instead of 1, like gamma - 1: models that store norms "
            "like this add 1 when they run. Rerun with --norm-bias 1 to measure the actual gains.",
            around_zero->size(), plural(count_of(tail, "norms"), "norm tensor"),
            first == nullptr ? "" : *first, one ? "" : ", ...", one ? "lies" : "lie")));
    }
    std::set<std::string> tensors;
    const std::vector<record> unjudged = records_in(tail, "unjudged");
    for (const record& u : unjudged) tensors.insert(text_of(u, "tensor"));
    if (!tensors.empty()) {
        notes.push_back(report::item(
            fmt::format("{} could not be judged, because none of {} blocks has two non-zero "
                        "elements ({}{}): axis=flat, as in -r {},axis=flat, uses blocks of the "
                        "flattened tensor instead.",
                        plural(tensors.size(), "tensor"), tensors.size() == 1 ? "its" : "their",
                        text_of(unjudged.front(), "tensor"), tensors.size() == 1 ? "" : ", ...",
                        text_of(unjudged.front(), "recipe"))));
    }
    for (const record& s : records_in(tail, "skipped")) {
        const std::string recipe = text_of(s, "recipe");
        notes.push_back(report::item(fmt::format("Left out: {}{}{}: {}", text_of(s, "tensor"),
                                                 recipe.empty() ? "" : " under ", recipe,
                                                 text_of(s, "reason"))));
    }
    return notes;
}

// The findings to show, with the tensor's name and, if there are several files, its file.
struct named_finding {
    const record& f;
    std::string name;
};

std::vector<named_finding> worst_of(const std::vector<const record*>& findings, bool all) {
    const std::size_t count = all ? findings.size() : std::min(listed_findings, findings.size());
    const bool files = std::ranges::any_of(findings, [&](const record* f) {
        return text_of(*f, "file") != text_of(*findings.front(), "file");
    });
    std::vector<named_finding> worst;
    for (std::size_t i = 0; i < count; ++i) {
        const record& f = *findings[i];
        const std::string name = text_of(f, "tensor");
        worst.push_back({f, files ? fmt::format("{}: {}", text_of(f, "file"), name) : name});
    }
    return worst;
}

// "2 tensors, all of them norms, have blocks that saturate, collapse or become zero".
std::string danger_text(const std::vector<const record*>& findings) {
    std::map<std::pair<std::string, std::string>, bool> norms;
    for (const record* f : findings) {
        norms[{text_of(*f, "file"), text_of(*f, "tensor")}] = text_of(*f, "role") == "norm";
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

section findings_section(const record& tail, const std::vector<const record*>& findings,
                         const std::vector<named_finding>& shown) {
    section s;
    if (findings.empty()) {
        const std::vector<record> health = records_in(tail, "health");
        const bool judged =
            std::ranges::any_of(health, [](const record& h) { return count_of(h, "judged") > 0; });
        s.heading = judged ? "No tensor has blocks that saturate, collapse or become zero"
                           : "Nothing to judge: no block has two finite, non-zero elements";
        for (const record& h : health) {
            std::string text = nearest_text(h);
            if (!text.empty()) s.notes.push_back(report::item(text));
        }
        return s;
    }
    s.heading = danger_text(findings);
    for (const named_finding& n : shown) s.notes.push_back(report::item(finding_text(n.f, n.name)));
    if (shown.size() < findings.size()) {
        s.notes.push_back(fmt::format("The {} worst of {} findings (--all: every one).",
                                      shown.size(), findings.size()));
    }
    return s;
}

// The recipes of a tensor are adjacent; tensors are in the order of their worst finding.
section figures_section(const std::vector<named_finding>& shown) {
    section s{
        .heading = "Their blocks",
        .columns = columns_of({"recipe", column_of("eligible_blocks", "blocks", cell::integer),
                               column_of("saturated_block_rate", "saturated\n%", cell::share),
                               column_of("collapsed_block_rate", "collapsed\n%", cell::share),
                               column_of("certain_overflow_block_rate", "all\nover %", cell::share),
                               column_of("clamp_zone_block_rate", "clamp\nzone %", cell::share),
                               column_of("saturated_block_gain", "gain", cell::fixed, 3),
                               column_of("spread_p50", "min/max\nmedian", cell::fixed, 3),
                               column_of("rmse", 3)}),
        .group_field = "label"};
    std::map<std::string, std::vector<const record*>> of_tensor;
    for (const named_finding& n : shown) of_tensor[n.name].push_back(&n.f);
    for (const named_finding& n : shown) {
        for (const record* f : std::exchange(of_tensor[n.name], {})) {
            record& row = s.rows.emplace_back();
            for (const report::column& c : s.columns) {
                row.emplace_back(c.field, value_of(*f, c.field));
            }
            row.emplace_back(s.group_field, n.name);
        }
    }
    s.notes = {
        "Saturated: every element gets the largest code, with or without loss. All over: every "
        "element is beyond the largest value. Clamp zone: the maximum is. Gain: the mean factor of "
        "the saturated blocks. 2^n is the power of two above a block's maximum."};
    return s;
}

section remedies_section(const std::vector<named_finding>& shown) {
    section s{.heading = "Remedies",
              .columns = columns_of({"change", column_of("bits", "bits"), column_of("rmse", 3),
                                     column_of("ailing", "affected\nblocks %", cell::share),
                                     column_of("choice", "")}),
              .group_field = "label"};
    for (const named_finding& n : shown) {
        const std::string label = fmt::format("{} under {}", n.name, text_of(n.f, "recipe"));
        const auto add = [&](const record& of, const std::string& change, const char* choice) {
            s.add_to(label, change, value_of(of, "bits_per_element"), value_of(of, "rmse"),
                     value_of(of, "ailing_block_rate"), choice);
        };
        add(n.f, "(none)", "");
        for (const record& m : records_in(n.f, "remedies")) {
            const bool chosen = text_of(m, "recipe") == text_of(n.f, "remedy");
            add(m, text_of(m, "change"), chosen ? "fewest bits" : "");
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

section summary_section(const record& tail) {
    section s{.heading = "All tensors, by recipe",
              .columns = columns_of(
                  {"recipe", "tensors", column_of("judged", "with blocks\nto judge", cell::integer),
                   column_of("danger", "in\ndanger", cell::integer),
                   column_of("saturating", "with saturated\nblocks", cell::integer),
                   column_of("saturated", "saturated\nblocks %", cell::share),
                   column_of("nearest", "nearest to saturating", cell::name),
                   column_of("nearness", "% of\nthreshold", cell::share)})};
    for (const record& h : records_in(tail, "health")) {
        const record* b = report::member<record>(h, "nearest");
        s.add(text_of(h, "recipe"), value_of(h, "tensors"), value_of(h, "judged"),
              value_of(h, "in_danger"), value_of(h, "saturating_tensors"),
              report::share(count_of(h, "saturated_blocks"), count_of(h, "eligible_blocks")),
              b == nullptr ? undefined() : value_of(*b, "tensor"),
              b == nullptr ? undefined() : value_of(*b, "nearness"));
    }
    s.notes = {fmt::format(
        "In danger: tensors with {:.0f} % or more of blocks that saturate, die or collapse. "
        "Threshold: the smallest magnitude of a block from which all its elements get the largest "
        "code; of the blocks that do not saturate, the nearest to it.",
        100 * cluster::danger_share)};
    return s;
}

// Groups by the share of their tensors that are in danger; empty where there are none.
section groups_section(const record& tail, bool all) {
    section s{
        .heading = "Groups with such tensors",
        .columns = columns_of(
            {column_of("tensor", "group"), "recipe", "members",
             column_of("members_in_danger", "in\ndanger", cell::integer), "saturated_block_rate",
             column_of("most_saturated_block_rate", "of the worst\n%", cell::share),
             column_of("most_saturated_member", "the worst", cell::name)}),
        .rows = records_in(tail, "groups_in_danger")};
    if (!all && s.rows.size() > listed_groups) {
        s.notes.push_back(fmt::format("The {} worst of {} groups (--all: every one).",
                                      listed_groups, s.rows.size()));
        s.rows.resize(listed_groups);
    }
    return s;
}

}  // namespace

bool is_diagnosis(const result_set& of) { return report::find(*of.tail, "health") != nullptr; }

std::vector<section> cluster_view(const result_set& of, bool all) {
    if (!is_diagnosis(of)) return {};
    const record& tail = *of.tail;
    const std::vector<const record*> findings = records_at(tail, "findings");
    const std::vector<named_finding> shown = worst_of(findings, all);
    std::vector<section> sections{findings_section(tail, findings, shown)};
    if (!shown.empty()) {
        sections.push_back(figures_section(shown));
        sections.push_back(remedies_section(shown));
    }
    put(sections, groups_section(tail, all));
    sections.push_back(summary_section(tail));
    put(sections, {.heading = "Notes", .notes = caveats(tail)});
    return sections;
}

}  // namespace mx::pages
