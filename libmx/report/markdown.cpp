// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

// Names are written as code spans, in which only the cell separator and backticks need escaping.
std::string code_span(const std::string& text) {
    if (text.empty()) return text;
    std::string body;
    std::size_t run = 0;
    std::size_t longest = 0;
    for (const char c : text) {
        run = c == '`' ? run + 1 : 0;
        longest = std::max(longest, run);
        body += c == '|' ? std::string("\\|") : std::string(1, c);
    }
    const std::string fence(longest + 1, '`');
    return longest == 0 ? fence + body + fence : fence + " " + body + " " + fence;
}

std::string escaped(const std::string& text) {
    std::string line;
    for (const char c : text) {
        // A title broken inside a word drops its hyphen together with the break.
        if (c == '\n' && line.ends_with('-')) {
            line.pop_back();
        } else {
            line += c == '\n' ? ' ' : c;
        }
    }
    std::string out;
    for (const char c : base::printable(line)) {
        if (std::string_view("\\`*_[]<>|#").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string cell_markdown(const record& r, const column& c) {
    const std::string text = cell_text(r, c);
    return c.kind == cell::name ? code_span(text) : escaped(text);
}

void write_rows(const section& s, const sink& out) {
    std::vector<column> columns = s.columns;
    if (!s.group_field.empty()) columns.insert(columns.begin(), {s.group_field, "", cell::name});
    std::string head = "|";
    std::string rule = "|";
    for (const column& c : columns) {
        head += " " + escaped(c.title) + " |";
        rule += is_numeric(c.kind) ? "---:|" : "---|";
    }
    out(head + "\n" + rule + "\n");
    for (const record& r : s.rows) {
        std::string line = "|";
        for (const column& c : columns) line += " " + cell_markdown(r, c) + " |";
        out(line + "\n");
    }
}

}  // namespace

void write_markdown(const document& d, const layout& l, const sink& out) {
    bool first = l.title.empty();
    if (!first) out("# " + escaped(l.title) + "\n");
    for (const section& s : d.sections) {
        // Markdown has no figures, and a heading alone is useless.
        if (s.columns.empty() && s.notes.empty()) continue;
        if (!first) out("\n");
        first = false;
        if (!s.heading.empty()) out("## " + escaped(s.heading) + "\n\n");
        if (!s.columns.empty()) write_rows(s, out);
        bool after_item = false;
        for (const note& n : s.notes) {
            const bool item = n.is == note::kind::item;
            if (!(item && after_item)) out("\n");
            if (n.is == note::kind::command) {
                out("```sh\n" + base::printable(n.text) + "\n```\n");
            } else {
                out((item ? "- " : "") + escaped(n.text) + "\n");
            }
            after_item = item;
        }
    }
}

}  // namespace mx::report
