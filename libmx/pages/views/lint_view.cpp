// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/lint_view.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "libmx/pages/views/values.hpp"

namespace mx::pages {

std::vector<report::section> lint_view(const document_parts& d, const view_options& o) {
    report::section table{.heading = "Findings",
                          .columns = columns_of({"rule", "severity", "found", "repair"}),
                          .group_field = "tensor"};
    std::map<std::pair<std::string, std::string>, std::size_t> of_rule;
    std::size_t more = 0;
    for (report::record r : d.results) {
        std::size_t& before = of_rule[{report::text_of(r, "rule"), report::text_of(r, "severity")}];
        if (before++ < rows_shown(o)) {
            table.rows.push_back(std::move(r));
        } else {
            ++more;
        }
    }
    if (more > 0) {
        table.notes.push_back(
            fmt::format("and {} more ({})", more, o.page ? "--json" : "--all: every one"));
    }
    return {std::move(table)};
}

}  // namespace mx::pages
