// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "libmx/report/cells.hpp"
#include "libmx/report/html/assets.hpp"
#include "libmx/report/html/base64.hpp"
#include "libmx/report/html/explorer.hpp"
#include "libmx/report/html/figures.hpp"
#include "libmx/report/html/table.hpp"
#include "libmx/report/html/text.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/svg/svg.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

using html::shown;

// A page of this many headings gets a table of contents.
constexpr std::size_t contents_from = 3;

// "mx diff" of "mx.diff/1" where the document does not say what it is called.
std::string title_of(const document& d) {
    if (!d.title.empty()) return d.title;
    std::string schema = text_of(d.head, "schema");
    schema.resize(std::min(schema.size(), schema.find('/')));
    std::replace(schema.begin(), schema.end(), '.', ' ');
    return schema.empty() ? "mx" : schema;
}

struct metric_name {
    std::string name, title;
};

// What the page can switch between: the metrics of its tables, then those only figures have.
std::vector<metric_name> metrics_of(const document& d) {
    std::vector<metric_name> metrics;
    const auto add = [&](const std::string& name, const std::string& title) {
        const bool known = std::any_of(metrics.begin(), metrics.end(),
                                       [&](const metric_name& m) { return m.name == name; });
        if (!known && !name.empty()) metrics.push_back({name, title});
    };
    for (const section& s : d.sections) {
        if (!s.all) continue;
        for (const explorer::metric& m : s.all->metrics) add(m.name, m.title);
    }
    for (const section& s : d.sections) {
        for (const figure& f : s.figures) {
            if (!f.group.empty()) add(f.metric, f.metric);
        }
    }
    return metrics;
}

// Nothing comes from elsewhere and nothing runs but the script of this very text: a name from a
// file that got past the escaping would still find no way to act.
void write_head(const std::string& title, const sink& out) {
    const html::asset css = html::page_css();
    const html::asset js = html::page_js();
    out("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out(
        fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "script-src '{}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
                    "form-action 'none'\">\n",
                    html::policy_hash(js.sha256)));
    out("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n");
    out(fmt::format("<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n", shown(title)));
    out("<style>\n");
    out(css.text);
    out(svg::style_sheet());
    out("</style>\n</head>\n");
}

void write_bar(const std::vector<metric_name>& metrics, const sink& out) {
    out("<div id=\"bar\" hidden>\n");
    if (metrics.size() > 1) {
        out("<label>Metric <select id=\"metric\">");
        for (const metric_name& m : metrics) {
            out(fmt::format("<option value=\"{}\">{}</option>", shown(m.name), shown(m.title)));
        }
        out("</select></label>\n");
    }
    out("<button type=\"button\" id=\"theme\">Dark</button>\n</div>\n");
}

void write_contents(const document& d, const std::vector<std::string>& ids, const sink& out) {
    const auto headed = [](const section& s) { return !s.heading.empty(); };
    const auto count = std::count_if(d.sections.begin(), d.sections.end(), headed);
    if (static_cast<std::size_t>(count) < contents_from) return;
    // Folded: the first screen is for what the page says.
    out("<nav aria-label=\"Contents\"><details>\n<summary>Contents</summary>\n<ul>\n");
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!headed(d.sections[i])) continue;
        out(fmt::format("<li><a href=\"#{}\">{}</a></li>\n", ids[i], shown(d.sections[i].heading)));
    }
    out("</ul>\n</details></nav>\n");
}

void write_notes(const std::vector<std::string>& notes, const sink& out) {
    bool in_list = false;
    for (const std::string& note : notes) {
        const bool item = note.rfind("- ", 0) == 0;
        if (item != in_list) out(item ? "<ul>\n" : "</ul>\n");
        in_list = item;
        out(item ? fmt::format("<li>{}</li>\n", shown(note.substr(2)))
                 : fmt::format("<p>{}</p>\n", shown(note)));
    }
    if (in_list) out("</ul>\n");
}

void write_section(const section& s, const std::string& id, const sink& out) {
    out(fmt::format("<section id=\"{}\">\n", id));
    if (!s.heading.empty()) {
        out(
            fmt::format("<h2>{} <a class=\"anchor\" href=\"#{}\" aria-label=\"Link to this "
                        "part\">#</a></h2>\n",
                        shown(s.heading), id));
    }
    if (!s.columns.empty()) html::write_rows(s, out);
    write_notes(s.notes, out);
    html::write_figures(s.figures, out);
    if (s.all) html::write_explorer(*s.all, id + "-all", out);
    out("</section>\n");
}

std::string scalar_text(const value& v) { return cell_text({{"", v}}, {"", "", cell::text}); }

std::string members_text(const record& r) {
    std::string text;
    for (const auto& [name, v] : r) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, scalar_text(v));
    }
    return text;
}

// What the page is of, as the other outputs say it: the members of the head.
void write_foot(const document& d, const sink& out) {
    if (d.head.empty()) return;
    out("<footer>\n<dl>\n");
    for (const auto& [name, v] : d.head) {
        out(fmt::format("<dt>{}</dt>", shown(name)));
        if (const auto* items = std::get_if<list>(&v)) {
            for (const value& item : *items) {
                const auto* members = std::get_if<record>(&item);
                out(fmt::format("<dd>{}</dd>",
                                html::shown_name(members != nullptr ? members_text(*members)
                                                                    : scalar_text(item))));
            }
            out(items->empty() ? "<dd>none</dd>\n" : "\n");
        } else if (const auto* members = std::get_if<record>(&v)) {
            out(fmt::format("<dd>{}</dd>\n", shown(members_text(*members))));
        } else {
            out(fmt::format("<dd>{}</dd>\n", html::shown_name(scalar_text(v))));
        }
    }
    out("</dl>\n</footer>\n");
}

}  // namespace

void write_html(const document& d, const layout&, const sink& out) {
    const std::string title = title_of(d);
    html::anchors anchors;
    std::vector<std::string> ids;
    for (const section& s : d.sections) ids.push_back(anchors.claim(s.heading));

    write_head(title, out);
    out(fmt::format("<body>\n<header><h1>{}</h1></header>\n", html::shown_name(title)));
    write_bar(metrics_of(d), out);
    write_contents(d, ids, out);
    out("<main>\n");
    for (std::size_t i = 0; i < ids.size(); ++i) write_section(d.sections[i], ids[i], out);
    out("</main>\n");
    write_foot(d, out);
    out("<script>");
    out(html::page_js().text);
    out("</script>\n</body>\n</html>\n");
}

}  // namespace mx::report
