// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/document_parts.hpp"

namespace mx::pages {

report::list verdict_lines(const std::vector<std::string>& notes) {
    report::list lines;
    for (const std::string& note : notes) {
        lines.emplace_back(note.starts_with("- ") ? note.substr(2) : note);
    }
    return lines;
}

report::section verdict_of(const report::record& tail) {
    report::section s{.heading = verdict_heading};
    const auto* lines = report::member<report::list>(tail, "verdict");
    if (lines == nullptr) return s;
    for (const report::value& v : *lines) {
        const auto* line = std::get_if<std::string>(&v);
        if (line == nullptr) continue;
        s.notes.push_back(line->starts_with("$ ") ? *line : "- " + *line);
    }
    return s;
}

}  // namespace mx::pages
