// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/changes_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/joined.hpp"
#include "libmx/pages/views/diff_view.hpp"
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

report::section changed_section(const report::record_list& results, const view_options& o) {
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
    const std::size_t most = o.page ? most_page_rows : most_changes;
    std::size_t changed = 0;
    for (report::record r : results) {
        const bool differs = result_changed(r);
        changed += differs ? 1 : 0;
        if (o.all || (differs && s.rows.size() < most)) s.rows.push_back(std::move(r));
    }
    s.heading = fmt::format("{} of {} changed", report::grouped(static_cast<std::int64_t>(changed)),
                            plural(results.size(), "result"));
    if (!o.all && changed > s.rows.size()) {
        s.heading += fmt::format("; the {} with the largest change{}", s.rows.size(),
                                 o.page ? "" : " (--all: every one)");
    }
    return s;
}

}  // namespace

std::vector<report::section> changes_view(const document_parts& d, const view_options& o) {
    return {order_section(d.head), changed_section(d.results, o), left_out_of(d.tail, o)};
}

}  // namespace mx::pages
