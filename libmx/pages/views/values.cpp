// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {

std::uint64_t counted(double x) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, report::whole(x)));
}

std::uint64_t count_of(const report::record& r, std::string_view name) {
    return counted(number_or(r, name, 0));
}

report::record document_head(const std::string& schema) {
    return {{"schema", schema},
            {"tool",
             report::record{{"name", std::string("mx")}, {"version", std::string(MX_VERSION)}}}};
}

namespace {

// THE LIST of columns that several tables show, by member.
report::column known_column(std::string_view member) {
    using report::cell;
    static const std::array<report::column, 89> columns{{
        {"D", "D", cell::significant, 3},
        {"N", "N", cell::significant, 3},
        {"accumulation_max_ulp", "max\nulp", cell::integer},
        {"accumulation_nrmse", "summing:\nerror / RMS", cell::significant, 3},
        {"bias", "bias", cell::integer},
        {"bits", "bits per\nelement", cell::fixed, 2},
        {"bits_per_element", "bits", cell::fixed, 2},
        {"blocks", "blocks", cell::integer},
        {"bytes", "bytes", cell::integer},
        {"clamp_error_share", "clamp\n%", cell::share},
        {"clamp_rate", "clamp\n%", cell::share},
        {"clamp_rate_a", "clamp %\nbefore", cell::share},
        {"clamp_rate_b", "\nafter", cell::share},
        {"clamped", "clamped", cell::integer},
        {"clamped_share", "clamped\n%", cell::share},
        {"codes_moved", "codes\nmoved %", cell::share},
        {"differing_share", "elements that\ndiffer %", cell::share},
        {"divergence", "sum of\nparts, nats", cell::significant, 3},
        {"element_share", "elements\n%", cell::share},
        {"elements", "elements", cell::integer},
        {"emax", "emax", cell::integer},
        {"equal", "exact\n%", cell::share},
        {"error_share", "of the\nerror %", cell::share},
        {"expected_nrmse", "if\nindependent", cell::significant, 3},
        {"gain", "gain", cell::fixed},
        {"gap", "gap", cell::significant, 3},
        {"gap_high", "to", cell::significant, 3},
        {"gap_low", "from", cell::significant, 3},
        {"grid_error_share", "grid\n%", cell::share},
        {"label_a", "from", cell::name},
        {"label_b", "to", cell::name},
        {"layer", "layer", cell::name},
        {"least_error", "least error"},
        {"line", "line", cell::integer},
        {"loss", "loss", cell::significant, 5},
        {"mark", ""},
        {"max", "max", cell::shortest},
        {"max_abs_error", "max\n|error|", cell::significant, 3},
        {"max_ulp", "max\nulp", cell::integer},
        {"mean_sqnr_db", "mean of\ntensors", cell::fixed, 2},
        {"members", "tensors", cell::integer},
        {"min_normal", "min normal", cell::shortest},
        {"min_subnormal", "min subnormal", cell::shortest},
        {"normal_db", "normal\ndata", cell::fixed, 2},
        {"nrmse", "nrmse", cell::significant, 3},
        {"operand", ""},
        {"oscillation", "flipped\nback %", cell::share},
        {"other", "and"},
        {"overflow_rate", "over-\nflow %", cell::share},
        {"path", "file", cell::name},
        {"rate", "G elements/s", cell::fixed, 3},
        {"ratio", "R-MSE\nratio", cell::significant},
        {"reason", "why"},
        {"regret_share", "regret\n%", cell::share},
        {"relative_error", "error\n/ RMS %", cell::share},
        {"rmse", "R-MSE", cell::significant},
        {"rmse_ratio", "R-MSE\nratio", cell::significant},
        {"role", "class"},
        {"row", "", cell::integer},
        {"ruled_out", "ruled out\ntensors", cell::integer},
        {"run", "run", cell::name},
        {"saturated_block_rate", "saturated\nblocks %", cell::share},
        {"saturated_block_rate_a", "saturated\nblocks %", cell::share},
        {"saturated_block_rate_b", "\nafter", cell::share},
        {"scale_churn", "scales\nmoved %", cell::share},
        {"second_ratio", "R-MSE\nratio", cell::significant},
        {"shape", "shape", cell::extents},
        {"sqnr_db", "SQNR\ndB", cell::fixed, 2},
        {"step", "step", cell::integer},
        {"steps", "steps", cell::integer},
        {"tensor", "tensor", cell::name},
        {"tensors", "tensors", cell::integer},
        {"total_bias_share", "bias of\nerror %", cell::share},
        {"total_cosine", "cosine", cell::fixed},
        {"total_gain", "gain", cell::fixed},
        {"total_nrmse", "error\n/ norm", cell::significant, 3},
        {"total_sqnr_db", "SQNR\ndB", cell::fixed, 2},
        {"underflow_error_share", "under-\nflow %", cell::share},
        {"underflow_rate", "under-\nflow %", cell::share},
        {"unstable", "unstable", cell::integer},
        {"unstable_at", "unstable at", cell::integer},
        {"values_changed", "values\nmoved %", cell::share},
        {"wins", "wins", cell::integer},
        {"worst_member", "worst tensor", cell::name},
        {"worst_member_sqnr_db", "its\nSQNR", cell::fixed, 2},
        {"worst_sqnr_db", "worst\nSQNR", cell::fixed, 2},
        {"worst_tensor", "in tensor", cell::name},
        {"zero", "to\nzero", cell::integer},
        {"zero_share", "to\nzero %", cell::share},
    }};
    const auto at = std::ranges::find(columns, member, &report::column::field);
    if (at != columns.end()) return *at;
    return {std::string(member), std::string(member)};
}

}  // namespace

column_of::column_of(const char* member) : report::column(known_column(member)) {}

column_of::column_of(const char* member, int decimals) : column_of(member) { digits = decimals; }

column_of::column_of(std::string member, std::string head) : report::column(known_column(member)) {
    title = std::move(head);
}

std::vector<report::column> columns_of(std::initializer_list<column_of> columns) {
    return {columns.begin(), columns.end()};
}

report::value exact_share(const report::record& r) {
    const std::uint64_t finite =
        count_of(r, "accumulation_elements") - count_of(r, "accumulation_non_finite");
    return report::share(finite - count_of(r, "accumulation_differing"), finite);
}

void show(report::record& row, std::string_view member, std::string_view as) {
    for (auto& [name, v] : row) {
        if (name == member) v = text(as);
    }
}

report::value sqnr_cell(std::optional<double> db, bool exact) {
    return exact ? text("exact") : report::to_value(db);
}

std::string short_member(const std::string& group, const std::string& member) {
    const std::size_t star = group.find_first_of("*?[");
    if (star == std::string::npos || group.compare(0, star, member, 0, star) != 0) return member;
    std::size_t end = 0;  // characters in common from the back
    while (end < group.size() - star && end < member.size() - star &&
           group[group.size() - 1 - end] == member[member.size() - 1 - end]) {
        ++end;
    }
    const std::size_t dot = star < 2 ? std::string::npos : member.find_last_of("./", star - 2);
    const std::size_t first = dot == std::string::npos ? 0 : dot + 1;
    return member.substr(first, member.size() - end - first);
}

void fill(report::section& to, std::vector<report::record> rows, const view_options& o) {
    const std::size_t all = rows.size(), shown = rows_shown(o);
    if (all > shown) {
        rows.resize(shown);
        to.notes.push_back(fmt::format("The first {} of {}; --json has all.", shown,
                                       report::grouped(static_cast<std::int64_t>(all))));
    }
    to.rows = std::move(rows);
}

report::section left_out_of(const report::record& tail, const view_options& o) {
    report::section s = left_out_section();
    fill(s, report::records_in(tail, "left_out"), o);
    for (report::record& r : s.rows) {
        if (report::text_of(r, "recipe").empty()) show(r, "recipe", "");  // under every recipe
    }
    return s;
}

report::section left_out_section() {
    return {.heading = "Left out", .columns = columns_of({"tensor", "recipe", "reason"})};
}

void put(std::vector<report::section>& to, report::section s) {
    if (!s.rows.empty() || !s.notes.empty() || !s.figures.empty() || s.all) {
        to.push_back(std::move(s));
    }
}

}  // namespace mx::pages
