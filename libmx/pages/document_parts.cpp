// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/document_parts.hpp"

#include <algorithm>

namespace mx::pages {

void add_verdict(report::document& d, std::string_view heading) {
    report::list lines;
    const auto at = std::ranges::find(d.sections, heading, &report::section::heading);
    if (at != d.sections.end()) {
        for (const std::string& note : at->notes) {
            lines.emplace_back(note.rfind("- ", 0) == 0 ? note.substr(2) : note);
        }
        std::rotate(d.sections.begin(), at, at + 1);
    }
    d.tail.emplace_back("verdict", std::move(lines));
}

report::section verdict_of(const report::record& tail) {
    report::section s{.heading = verdict_heading};
    const auto* lines = report::member<report::list>(tail, "verdict");
    if (lines == nullptr) return s;
    for (const report::value& v : *lines) {
        if (const auto* line = std::get_if<std::string>(&v)) s.notes.push_back("- " + *line);
    }
    return s;
}

}  // namespace mx::pages
