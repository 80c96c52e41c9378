// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

void add_verdict(report::document& d, std::string_view heading) {
    report::list lines;
    for (const report::section& s : d.sections) {
        if (s.heading != heading) continue;
        for (const std::string& note : s.notes) {
            lines.emplace_back(note.rfind("- ", 0) == 0 ? note.substr(2) : note);
        }
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
