// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/values.hpp"

namespace mx::pages {

report::record document_head(const std::string& schema) {
    return {{"schema", schema},
            {"tool",
             report::record{{"name", std::string("mx")}, {"version", std::string(MX_VERSION)}}}};
}

void show(report::record& row, std::string_view member, std::string_view as) {
    for (auto& [name, v] : row) {
        if (name == member) v = text(as);
    }
}

report::section left_out_section() {
    return {.heading = "Left out",
            .columns = {
                {"tensor", "tensor", report::cell::name}, {"recipe", "recipe"}, {"reason", "why"}}};
}

void put(std::vector<report::section>& to, report::section s) {
    if (!s.rows.empty() || !s.notes.empty() || !s.figures.empty() || s.all) {
        to.push_back(std::move(s));
    }
}

}  // namespace mx::pages
