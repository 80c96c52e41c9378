// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t shown_groups = 20;

// From this ratio on, the worst tensor of a group is much worse than the group.
double lead(const analysis::result& r) { return r.sqnr_db - r.group->worst_sqnr_db; }

}  // namespace

report::section groups_section(const review_data& e) {
    struct row {
        std::size_t tensor;
        analysis::result of;
    };
    std::vector<row> rows;
    for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
        for (analysis::result& r : e.table.all_of(t)) {
            if (r.group && r.group->members > 1 && lead(r) > 0) rows.push_back({t, std::move(r)});
        }
    }
    std::ranges::stable_sort(rows, std::greater{}, [](const row& r) { return lead(r.of); });
    if (rows.size() > shown_groups) rows.resize(shown_groups);
    if (rows.empty()) return {};
    report::section s{.heading = "The worst tensors of groups",
                      .columns = columns_of({"tensor", "recipe", "members", "sqnr_db",
                                             "worst_member_sqnr_db", "worst_member"})};
    for (const row& r : rows) {
        s.add(e.tensor_name(r.tensor), r.of.under->name, r.of.group->members, r.of.sqnr_db,
              r.of.group->worst_sqnr_db, r.of.group->worst_member);
    }
    s.notes.push_back(
        "Of every group and recipe the tensor with the lowest SQNR, where it lies furthest below "
        "that of its group first.");
    return s;
}

}  // namespace mx::pages
