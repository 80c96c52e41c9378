// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/changes_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/joined.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::plural;
using report::text_of;

constexpr std::size_t most_changes = 40;  // lines, as `mx analyze` shows

bool result_changed(const report::record& r) {
    return std::ranges::any_of(r, [&](const auto& member) {
        const std::string& name = member.first;
        if (!name.ends_with("_change")) return false;
        const std::string figure = name.substr(0, name.size() - 7);
        return report::number_of(r, figure + "_a") != report::number_of(r, figure + "_b");
    });
}

report::section changed_section(const report::record_list& results, bool all) {
    report::section s{
        .columns = columns_of({"recipe", column_of("sqnr_db_a", "SQNR dB\nbefore", cell::fixed, 2),
                               column_of("sqnr_db_b", "\nafter", cell::fixed, 2),
                               column_of("sqnr_db_change", "\nchange", cell::fixed, 2),
                               column_of("rmse_a", "R-MSE\nbefore", cell::significant, 3),
                               column_of("rmse_b", "\nafter", cell::significant, 3), "clamp_rate_a",
                               "clamp_rate_b",
                               column_of("underflow_rate_a", "underflow\n% before", cell::share),
                               column_of("underflow_rate_b", "\nafter", cell::share),
                               "saturated_block_rate_a", "saturated_block_rate_b"}),
        .group_field = "tensor"};
    std::size_t changed = 0;
    for (report::record r : results) {
        const bool differs = result_changed(r);
        changed += differs ? 1 : 0;
        if (all || (differs && s.rows.size() < most_changes)) s.rows.push_back(std::move(r));
    }
    s.heading = fmt::format("{} of {} changed", report::grouped(static_cast<std::int64_t>(changed)),
                            plural(results.size(), "result"));
    if (!all && changed > s.rows.size()) {
        s.heading +=
            fmt::format("; the {} with the largest change (--all: every one)", s.rows.size());
    }
    return s;
}

report::section uncompared_section(const report::record& tail, bool all) {
    constexpr std::size_t shown = 10;
    report::section s = left_out_section();
    const std::vector<report::record> list = report::records_in(tail, "left_out");
    for (const report::record& r : list) {
        if (!all && s.rows.size() == shown) break;
        s.add(text_of(r, "tensor"), text_of(r, "recipe"), text_of(r, "reason"));
    }
    if (s.rows.size() < list.size()) {
        s.notes.push_back(
            fmt::format("and {} more (--all: every one)",
                        report::grouped(static_cast<std::int64_t>(list.size() - s.rows.size()))));
    }
    return s;
}

// "that of 7 fell, at most by 3.21 dB (layers.0.w)"
std::string moved_text(const report::record& r, const std::string& way, const char* size,
                       const char* tensor) {
    return fmt::format(
        "that of {} {}, at most by {:.2f} dB ({})",
        report::grouped(report::whole(report::number_of(r, "sqnr_" + way).value_or(0))), way,
        report::number_of(r, size).value_or(0), text_of(r, tensor));
}

std::string recipe_sentence(const report::record& r) {
    const auto count = [&](const char* name) {
        return report::whole(report::number_of(r, name).value_or(0));
    };
    std::string text =
        fmt::format("- {}: {} of {} changed", text_of(r, "recipe"),
                    report::grouped(count("changed")), plural(count("compared"), "tensor"));
    if (count("changed") == 0) return text + ".";
    std::vector<std::string> moves;
    if (count("sqnr_fell") > 0) {
        moves.push_back(moved_text(r, "fell", "largest_fall_db", "fell_most"));
    }
    if (count("sqnr_rose") > 0) {
        moves.push_back(moved_text(r, "rose", "largest_rise_db", "rose_most"));
    }
    if (count("sqnr_undefined") > 0) {
        moves.push_back(fmt::format("that of {} is defined in one file only",
                                    report::grouped(count("sqnr_undefined"))));
    }
    if (moves.empty()) return text + "; no SQNR changed.";
    text += ". SQNR: " + base::joined(moves, "; ");
    return text + ".";
}

}  // namespace

std::vector<report::section> changes_sections(const report::record_list& results,
                                              const report::record& tail, bool all) {
    std::vector<report::section> sections;
    report::section left_out = uncompared_section(tail, all);
    if (results.empty()) {
        sections.push_back(
            {.heading = "No result to compare: no tensor is in both files under the same recipe"});
        if (!left_out.rows.empty()) sections.push_back(std::move(left_out));
        return sections;
    }
    report::section verdict{.heading = "Verdict"};
    report::section changed = changed_section(results, all);
    std::int64_t moved = 0;
    for (const report::record& r : report::records_in(tail, "summary")) {
        moved += report::whole(report::number_of(r, "changed").value_or(0));
        verdict.notes.push_back(recipe_sentence(r));
    }
    if (moved == 0) {
        verdict.notes = {fmt::format("No figure of {} differs{}.", plural(results.size(), "result"),
                                     left_out.rows.empty() ? "" : "; others were left out")};
    }
    sections.push_back(std::move(verdict));
    if (!changed.rows.empty()) sections.push_back(std::move(changed));
    if (!left_out.rows.empty()) sections.push_back(std::move(left_out));
    return sections;
}

}  // namespace mx::pages
