// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/diff_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::column;
using report::plural;
using report::text_of;

constexpr std::size_t findings_shown = 5;

double number(const report::record& r, std::string_view name) {
    return report::number_of(r, name).value_or(0);
}

bool is_null(const report::record& r, std::string_view name) {
    const report::value* v = report::find(r, name);
    return v == nullptr || std::holds_alternative<std::monostate>(*v);
}

// By relative error if there is one; a tensor of zeros that changed comes first.
double severity(const report::record& r) {
    if (!is_null(r, "nrmse")) return number(r, "nrmse");
    return number(r, "changed_values") > 0 ? std::numeric_limits<double>::infinity() : 0;
}

// A tensor with its records of one pair of dumps, the pair with the largest difference.
struct tensor_moves {
    std::vector<std::size_t> records;  // indices of results, one per recipe
    std::size_t pair = 0;
    std::pair<double, double> worst{-1, 0};  // nrmse, scale churn
    bool changed = false;
};

// Results are ordered by tensor, recipe and pair; there are `pairs` pairs, and labels may repeat.
std::vector<tensor_moves> by_tensor(const report::record_list& results, std::size_t pairs) {
    std::vector<tensor_moves> tensors;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const report::record r = results[i];
        const auto [at, added] = places.emplace(text_of(r, "tensor"), tensors.size());
        if (added) tensors.emplace_back();
        tensor_moves& t = tensors[at->second];
        const std::size_t pair = i % pairs;
        const std::pair<double, double> here{severity(r), number(r, "scale_churn")};
        t.changed =
            t.changed || number(r, "changed_values") > 0 || number(r, "changed_zero_signs") > 0;
        if (pair == t.pair) {
            t.worst = std::max(t.worst, here);
        } else if (here > t.worst) {
            t.worst = here;
            t.pair = pair;
        }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        const report::record r = results[i];
        tensor_moves& t = tensors[places.at(text_of(r, "tensor"))];
        if (i % pairs == t.pair) t.records.push_back(i);
    }
    return tensors;
}

std::string significant(const report::record& r, std::string_view field) {
    return report::cell_text(r, {std::string(field), "", cell::significant, 3});
}

// "layers.0.w  BF16 64x128, 100 -> 200: nrmse 0.0123, 45.10 % of the values changed"
std::string label_of(const report::record& r, bool with_pair) {
    const auto* extents = report::member<report::list>(r, "shape");
    // Members of a group may differ in one of them.
    const auto dtype = [&](std::string_view field) {
        return is_null(r, field) ? std::string("mixed") : text_of(r, field);
    };
    std::string types = dtype("dtype");
    if (const std::string next = dtype("dtype_b"); next != types) types += "/" + next;
    std::string label = fmt::format("{}  {} {}", text_of(r, "tensor"), types,
                                    extents == nullptr ? "" : report::extents_text(*extents));
    if (with_pair) label += fmt::format(", {} -> {}", text_of(r, "label_a"), text_of(r, "label_b"));
    label += fmt::format(": nrmse {}", significant(r, "nrmse"));
    const double members = number(r, "members");
    if (members < 2) {
        return label + fmt::format(", {} % of the values changed",
                                   report::percent_text(number(r, "values_changed")));
    }
    return label + fmt::format("; worst of {}: {}, {}", members,
                               short_member(text_of(r, "tensor"), text_of(r, "worst_member")),
                               significant(r, "worst_member_nrmse"));
}

// Figures by recipe; oscillation only with three or more dumps.
std::vector<column> move_columns(bool series) {
    std::vector<column> columns = columns_of(
        {"scale_churn", "codes_moved",
         column_of("codes_moved_at_equal_scale", "at equal\nscale %", cell::share), "oscillation",
         "clamp_rate_a", "clamp_rate_b", "saturated_block_rate_a", "saturated_block_rate_b"});
    if (!series) std::erase_if(columns, [](const column& c) { return c.field == "oscillation"; });
    return columns;
}

report::section finding_section(const diff::diff_result& d, const diff::dump_labels& labels,
                                bool all) {
    report::section s{.heading = "Norm gains that approach the clamp zone"};
    const std::size_t shown = all ? d.findings.size() : std::min(findings_shown, d.findings.size());
    for (std::size_t i = 0; i < shown; ++i) {
        s.notes.push_back("- " + diff::sentence_of(d.findings[i], labels));
    }
    if (shown < d.findings.size()) {
        s.notes.push_back(
            fmt::format("- and {} more (--all: every one).", d.findings.size() - shown));
    }
    s.notes.push_back(
        "Distances are in octaves from a block's maximum to the edge of the zone that it "
        "approaches: negative before it, positive beyond.");
    return s;
}

report::section tensor_section(const diff::diff_result& d, std::size_t pairs, std::size_t recipes,
                               bool all) {
    const bool series = pairs > 1;
    std::vector<tensor_moves> tensors = by_tensor(d.results, pairs);
    const std::size_t total = tensors.size();
    if (!all) {
        std::erase_if(tensors, [](const tensor_moves& t) { return !t.changed; });
    }
    const std::size_t changed = tensors.size();
    // About forty lines, as in `mx analyze`.
    const std::size_t most = std::clamp<std::size_t>(40 / recipes, 3, 10);
    const std::size_t count = all ? changed : std::min(changed, most);
    const report::record first = d.results[0];
    const bool groups = report::find(first, "members") != nullptr;
    const std::string_view things = groups ? "record" : "tensor";
    report::section s;
    if (all) {
        s.heading = plural(total, things);
    } else {
        std::ranges::stable_sort(tensors, std::greater{}, &tensor_moves::worst);
        s.heading = count < changed
                        ? fmt::format(
                              "The {} of {} changed {}s with the largest relative "
                              "difference (--all: every one)",
                              count, changed, things)
                        : fmt::format("{} of {} changed",
                                      report::grouped(static_cast<std::int64_t>(changed)),
                                      plural(total, things));
    }
    s.columns = columns_of({"recipe"});
    for (const column& c : move_columns(series)) s.columns.push_back(c);
    s.group_field = "label";
    for (std::size_t i = 0; i < count; ++i) {
        for (const std::size_t place : tensors[i].records) {
            report::record row = d.results[place];
            row.emplace_back("label", label_of(row, series));
            s.rows.push_back(std::move(row));
        }
    }
    return s;
}

report::section summary_section(const diff::diff_result& d, bool series) {
    report::section s{.heading = "All tensors together"};
    if (series) {
        s.group_field = "recipe";
        s.columns = columns_of({"label_a", "label_b"});
    } else {
        s.columns = columns_of({"recipe"});
    }
    s.columns.push_back(column_of("nrmse"));
    s.columns.push_back(column_of("values_changed"));
    const auto turned = [](const report::record& r) { return number(r, "changed_zero_signs") > 0; };
    if (std::ranges::any_of(d.summary, turned)) {
        s.columns.push_back({"changed_zero_signs", "sign of\n0 only", cell::integer});
    }
    for (const column& c : move_columns(series)) s.columns.push_back(c);
    s.rows = d.summary;
    return s;
}

report::section left_out_of(const diff::diff_result& d) {
    report::section s = left_out_section();
    for (const engine::skipped_tensor& t : d.left_out) s.add(t.tensor, t.recipe, t.reason);
    return s;
}

// The counts of one recipe, over all pairs of dumps.
struct recipe_counts {
    double elements = 0, codes = 0, blocks = 0, scales = 0, equal = 0, moved_equal = 0;
    double followed = 0, flipped = 0;
};

std::vector<std::pair<std::string, recipe_counts>> counts_of(
    const std::vector<report::record>& summary) {
    std::vector<std::pair<std::string, recipe_counts>> all;
    for (const report::record& r : summary) {
        const std::string recipe = text_of(r, "recipe");
        if (all.empty() || all.back().first != recipe) all.emplace_back(recipe, recipe_counts{});
        recipe_counts& c = all.back().second;
        c.elements += number(r, "elements");
        c.codes += number(r, "moved_codes");
        c.blocks += number(r, "blocks");
        c.scales += number(r, "moved_scales");
        c.equal += number(r, "elements_at_equal_scale");
        c.moved_equal += number(r, "moved_codes_at_equal_scale");
        if (is_null(r, "oscillation")) continue;
        c.followed += number(r, "elements");
        c.flipped += number(r, "oscillation") * number(r, "elements");
    }
    return all;
}

std::string percent(double part, double whole) {
    return report::percent_text(whole > 0 ? std::min(1.0, part / whole) : 0) + " %";
}

std::string flip_text(const recipe_counts& c) {
    if (c.followed == 0) return {};
    return fmt::format("; {} of the codes moved and were back one dump later",
                       percent(c.flipped, c.followed));
}

// "0.31 % of the codes moved; the scales of 1.20 % of the blocks changed, and where they did not,
// 0.10 % of the codes moved; 0.05 % of the codes moved and were back one dump later"
std::string move_text(const recipe_counts& c) {
    if (c.codes == 0 && c.scales == 0) return "no scale and no code changed";
    if (c.scales == 0) {
        return fmt::format("{} of the codes changed, and no scale", percent(c.codes, c.elements)) +
               flip_text(c);
    }
    std::string text = fmt::format("{} of the codes moved; the scales of {} of the blocks changed",
                                   percent(c.codes, c.elements), percent(c.scales, c.blocks));
    if (c.equal > 0) {
        text += fmt::format(", and where they did not, {} of the codes moved",
                            percent(c.moved_equal, c.equal));
    }
    return text + flip_text(c);
}

report::section verdict_section(const diff::diff_result& d, bool series) {
    report::section s{.heading = "Verdict"};
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const report::record& r : d.summary) {
        if (is_null(r, "nrmse")) continue;
        least = std::min(least, number(r, "nrmse"));
        most = std::max(most, number(r, "nrmse"));
    }
    if (least > most) {
        s.notes.push_back("The values before are all zero or not finite: nrmse is undefined.");
    } else if (series) {
        s.notes.push_back(
            fmt::format("From dump to dump the values differ by {:.3g} to {:.3g} of their RMS "
                        "(nrmse).",
                        least, most));
    } else {
        s.notes.push_back(fmt::format("The values differ by {:.3g} of their RMS (nrmse).", most));
    }
    for (const auto& [recipe, c] : counts_of(d.summary)) {
        s.notes.push_back(fmt::format("- {}: {}.", recipe, move_text(c)));
    }
    return s;
}

}  // namespace

report::section order_section(const diff::dump_labels& labels,
                              const std::vector<std::string>& given) {
    std::string order = fmt::format("Order: {}", base::joined(labels.text, ", "));
    if (!given.empty()) {
        order += fmt::format("; by number, given as {} (--as-given keeps that)",
                             base::joined(given, ", "));
    }
    report::section s;
    s.notes.push_back(order + ".");
    return s;
}

std::vector<report::section> diff_sections(const diff::diff_result& d,
                                           const diff::dump_labels& labels, bool all) {
    const bool series = labels.text.size() > 2;
    std::vector<report::section> sections;
    if (d.identical) {
        report::section s{.heading = "Verdict"};
        s.notes.push_back(fmt::format(
            "The {} dumps are identical: every one of {} in {} has the same value{}.",
            labels.text.size(), plural(d.elements, "element"), plural(d.tensors, "tensor"),
            d.left_out.empty() ? "" : "; others were left out"));
        sections.push_back(std::move(s));
    } else if (d.results.empty()) {
        sections.push_back(
            {.heading = "No tensor to compare: none is in all dumps with the same shape"});
    } else {
        const std::size_t recipes = std::max<std::size_t>(1, counts_of(d.summary).size());
        sections.push_back(verdict_section(d, series));
        if (!d.findings.empty()) sections.push_back(finding_section(d, labels, all));
        sections.push_back(tensor_section(d, labels.text.size() - 1, recipes, all));
        sections.push_back(summary_section(d, series));
    }
    if (!d.left_out.empty()) sections.push_back(left_out_of(d));
    return sections;
}

}  // namespace mx::pages
