// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/values.hpp"

#include <algorithm>
#include <array>

namespace mx::pages {

report::record document_head(const std::string& schema) {
    return {{"schema", schema},
            {"tool",
             report::record{{"name", std::string("mx")}, {"version", std::string(MX_VERSION)}}}};
}

std::vector<report::column> columns_of(std::initializer_list<std::string_view> members) {
    using report::cell;
    static const std::array known{
        report::column{"bits_per_element", "bits", cell::fixed, 2},
        report::column{"clamp_error_share", "clamp\n%", cell::share},
        report::column{"clamp_rate", "clamp\n%", cell::share},
        report::column{"elements", "elements", cell::integer},
        report::column{"error_share", "of the\nerror %", cell::share},
        report::column{"grid_error_share", "grid\n%", cell::share},
        report::column{"members", "tensors", cell::integer},
        report::column{"max_abs_error", "max\n|error|", cell::significant, 3},
        report::column{"mean_sqnr_db", "mean of\ntensors", cell::fixed, 2},
        report::column{"overflow_rate", "over-\nflow %", cell::share},
        report::column{"reason", "why"},
        report::column{"regret_share", "regret\n%", cell::share},
        report::column{"rmse", "R-MSE", cell::significant},
        report::column{"role", "class"},
        report::column{"saturated_block_rate", "saturated\nblocks %", cell::share},
        report::column{"shape", "shape", cell::extents},
        report::column{"sqnr_db", "SQNR\ndB", cell::fixed, 2},
        report::column{"tensor", "tensor", cell::name},
        report::column{"underflow_error_share", "under-\nflow %", cell::share},
        report::column{"underflow_rate", "under-\nflow %", cell::share},
        report::column{"worst_member", "worst tensor", cell::name},
        report::column{"worst_member_sqnr_db", "its\nSQNR", cell::fixed, 2},
        report::column{"worst_sqnr_db", "worst\nSQNR", cell::fixed, 2},
        report::column{"worst_tensor", "in tensor", cell::name},
    };
    std::vector<report::column> columns;
    for (const std::string_view name : members) {
        const auto at = std::ranges::find(known, name, &report::column::field);
        columns.push_back(at != known.end() ? *at
                                            : report::column{std::string(name), std::string(name)});
    }
    return columns;
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

report::section left_out_section() {
    return {.heading = "Left out", .columns = columns_of({"tensor", "recipe", "reason"})};
}

void put(std::vector<report::section>& to, report::section s) {
    if (!s.rows.empty() || !s.notes.empty() || !s.figures.empty() || s.all) {
        to.push_back(std::move(s));
    }
}

}  // namespace mx::pages
