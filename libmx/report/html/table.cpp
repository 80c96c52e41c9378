// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/html/table.hpp"

#include <fmt/format.h>

#include "libmx/report/cells.hpp"
#include "libmx/report/html/text.hpp"

namespace mx::report::html {
namespace {

// How a cell is set: page.css knows the classes.
std::string_view class_of(cell kind) {
    if (is_numeric(kind)) return " class=\"n\"";
    return kind == cell::name ? " class=\"name\"" : "";
}

void write_group(const std::string& label, std::size_t columns, const sink& out) {
    out(fmt::format("<tr class=\"group\"><th colspan=\"{}\" scope=\"colgroup\">{}</th></tr>\n",
                    columns, shown_name(label)));
}

void write_row(const section& s, const record& r, const sink& out) {
    std::string line = "<tr>";
    for (const column& c : s.columns) {
        const std::string text = cell_text(r, c);
        line += fmt::format("<td{}>{}</td>", class_of(c.kind),
                            c.kind == cell::name ? shown_name(text) : shown_words(text));
    }
    out(line + "</tr>\n");
}

}  // namespace

void write_rows(const section& s, const sink& out) {
    out("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (const column& c : s.columns) {
        out(fmt::format("<th scope=\"col\"{}>{}</th>", class_of(c.kind), shown_title(c.title)));
    }
    out("</tr></thead>\n<tbody>\n");
    const column group{s.group_field, "", cell::name};
    std::string current;
    for (std::size_t i = 0; i < s.rows.size(); ++i) {
        const std::string label =
            s.group_field.empty() ? std::string() : cell_text(s.rows[i], group);
        if (!s.group_field.empty() && (i == 0 || label != current)) {
            write_group(label, s.columns.size(), out);
        }
        current = label;
        write_row(s, s.rows[i], out);
    }
    out("</tbody>\n</table></div>\n");
}

}  // namespace mx::report::html
