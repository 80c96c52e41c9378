// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libmx/report/cells.hpp"
#include "libmx/report/figure_data.hpp"
#include "libmx/report/fragment.hpp"
#include "libmx/report/html/assets.hpp"
#include "libmx/report/html/explorer.hpp"
#include "libmx/report/html/text.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/svg/svg.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

using html::shown;

// From this many headings on, a page has a table of contents.
constexpr std::size_t contents_from = 3;

// "mx diff" for "mx.diff/1", if the document has no name of its own.
std::string title_of(const document& d) {
    if (!d.title.empty()) return d.title;
    std::string schema = text_of(d.head, "schema");
    schema.resize(std::min(schema.size(), schema.find('/')));
    std::ranges::replace(schema, '.', ' ');
    return schema.empty() ? "mx" : schema;
}

struct metric_name {
    std::string name, title;
};

// The metrics that the page can switch between: those of its tables, then those of figures only.
std::vector<metric_name> metrics_of(const document& d) {
    std::vector<metric_name> metrics;
    const auto add = [&](const std::string& name, const std::string& title) {
        const bool known =
            std::ranges::any_of(metrics, [&](const metric_name& m) { return m.name == name; });
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

// Allows nothing but this exact script and no external resources: text from a file that escaped the
// escaping still could not run.
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
    const auto count = std::ranges::count_if(d.sections, headed);
    if (static_cast<std::size_t>(count) < contents_from) return;
    out("<nav aria-label=\"Contents\"><ul>\n");
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!headed(d.sections[i])) continue;
        out(fmt::format("<li><a href=\"#{}\">{}</a></li>\n", ids[i], shown(d.sections[i].heading)));
    }
    out("</ul></nav>\n");
}

void write_notes(const std::vector<note>& notes, const sink& out) {
    bool in_list = false;
    for (const note& n : notes) {
        const bool item = n.is == note::kind::item;
        if (item != in_list) out(item ? "<ul>\n" : "</ul>\n");
        in_list = item;
        const std::string text = shown(n.text);
        switch (n.is) {
            case note::kind::item:
                out(fmt::format("<li>{}</li>\n", text));
                break;
            case note::kind::paragraph:
                out(fmt::format("<p>{}</p>\n", text));
                break;
            case note::kind::command:
                out(fmt::format(
                    "<div class=\"command\"><pre tabindex=\"0\"><code>{}</code></pre></div>\n",
                    text));
        }
    }
    if (in_list) out("</ul>\n");
}

// The CSS class of a cell; page.css defines them.
std::string_view class_of(cell kind) {
    if (is_numeric(kind)) return " class=\"n\"";
    return kind == cell::name ? " class=\"name\"" : "";
}

void write_group(const std::string& label, std::size_t columns, const sink& out) {
    out(fmt::format("<tr class=\"group\"><th colspan=\"{}\" scope=\"colgroup\">{}</th></tr>\n",
                    columns, html::shown_name(label)));
}

// A name, linked to its row if the page has a table of all rows.
std::string name_text(const std::string& name, const html::row_links& links) {
    const std::string id = links.id_of(name);
    if (id.empty()) return html::shown_name(name);
    return fmt::format("<a href=\"#{}\">{}</a>", id, html::shown_name(name));
}

void write_row(const section& s, const record& r, const html::row_links& links, const sink& out) {
    std::string line = "<tr>";
    for (const column& c : s.columns) {
        const std::string text = cell_text(r, c);
        line +=
            fmt::format("<td{}>{}</td>", class_of(c.kind),
                        c.kind == cell::name ? name_text(text, links) : html::shown_words(text));
    }
    out(line + "</tr>\n");
}

// A table that scrolls horizontally if it is too wide.
void write_body(const section& s, const html::row_links& links, const sink& out) {
    out("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (const column& c : s.columns) {
        out(fmt::format("<th scope=\"col\"{}>{}</th>", class_of(c.kind),
                        html::shown_title(c.title)));
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
        write_row(s, s.rows[i], links, out);
    }
    out("</tbody>\n</table></div>\n");
}

// The colour range of each quantity, the same in every heat map of a page.
class shared_ranges {
  public:
    explicit shared_ranges(const document& d) {
        for (const section& s : d.sections) {
            for (const figure& f : s.figures) {
                if (const auto* map = std::get_if<heat_map>(&f.what)) see(*map);
            }
        }
    }

    /// `f` with the colour range of its quantity.
    figure over_range(const figure& f) const {
        figure out = f;
        if (auto* map = std::get_if<heat_map>(&out.what)) {
            const auto at = ranges_.find(quantity_of(*map));
            if (at == ranges_.end()) return out;
            if (!map->value.low) map->value.low = at->second.first;
            if (!map->value.high) map->value.high = at->second.second;
        }
        return out;
    }

  private:
    static std::string quantity_of(const heat_map& m) {
        return fmt::format("{}\n{}\n{}", m.value.title, m.value.unit, m.value.log);
    }

    void see(const heat_map& m) {
        for (const auto& row : m.cells) {
            for (const std::optional<double>& v : row) {
                if (!v || !std::isfinite(*v) || (m.value.log && *v <= 0)) continue;
                const auto [at, added] = ranges_.emplace(quantity_of(m), std::pair(*v, *v));
                at->second.first = std::min(at->second.first, *v);
                at->second.second = std::max(at->second.second, *v);
            }
        }
    }

    std::map<std::string, std::pair<double, double>> ranges_;
};

void write_figure(const figure& as_given, const shared_ranges& ranges, const sink& out) {
    const figure f = ranges.over_range(as_given);
    const std::string id = shown(f.id);
    const std::string drawing = svg::element_of(f);
    const bool wide = drawing.rfind("<svg class=\"plot wide\"", 0) == 0;
    out(fmt::format("<figure id=\"figure-{}\"{} data-metric=\"{}\">\n", id,
                    wide ? " class=\"wide\"" : "", shown(f.metric)));
    out(fmt::format("<figcaption><strong>{}</strong>{}\n", shown(f.title), shown(f.caption)));
    out(fmt::format("<a class=\"data\" download=\"{}.csv\" href=\"data:text/csv;base64,", id));
    out(html::base64(csv_of(f)));
    out("\">data as CSV</a></figcaption>\n");
    out(svg::legend_of(f));
    out("<div class=\"scroll\">");
    out(drawing);
    out("</div>\n</figure>\n");
}

void write_group(const std::vector<const figure*>& group, const shared_ranges& ranges,
                 const sink& out) {
    out("<div class=\"alternatives\">\n");
    write_figure(*group.front(), ranges, out);
    if (group.size() > 1) {
        std::string metrics;
        for (std::size_t i = 1; i < group.size(); ++i) {
            metrics += (i == 1 ? "" : ", ") + shown(group[i]->metric);
        }
        out(fmt::format("<details>\n<summary>The same by {}</summary>\n", metrics));
        for (std::size_t i = 1; i < group.size(); ++i) write_figure(*group[i], ranges, out);
        out("</details>\n");
    }
    out("</div>\n");
}

// Figures in order, each with its data. Figures of one group are placed at the first one, which is
// open; the others are folded until the script joins them into one.
void write_figures(const std::vector<figure>& figures, bool more, const shared_ranges& ranges,
                   const sink& out) {
    const auto belongs = [&](const figure& f) { return f.more == more; };
    const auto count = std::ranges::count_if(figures, belongs);
    if (count == 0) return;
    if (more) {
        std::string titles;
        for (const figure& f : figures) {
            if (belongs(f)) titles += (titles.empty() ? "" : "; ") + f.title;
        }
        out(fmt::format("<details class=\"more\">\n<summary>{}: {}</summary>\n",
                        plural(static_cast<std::size_t>(count), "more figure"), shown(titles)));
    }
    out("<div class=\"figures\">\n");
    std::set<std::string> written;
    for (const figure& f : figures) {
        if (!belongs(f)) continue;
        if (f.group.empty()) {
            write_figure(f, ranges, out);
        } else if (written.insert(f.group).second) {
            std::vector<const figure*> group;
            for (const figure& other : figures) {
                if (other.group == f.group && belongs(other)) group.push_back(&other);
            }
            write_group(group, ranges, out);
        }
    }
    out(more ? "</div>\n</details>\n" : "</div>\n");
}

// A section; if it is folded, includes the following ones without a heading.
// The `first` one has its figures beside its words.
void write_section(std::span<const section> sections, const std::string& id, bool first,
                   const html::row_links& links, const shared_ranges& ranges, const sink& out) {
    const section& s = sections.front();
    const bool beside = first && !s.figures.empty() && s.columns.empty();
    out(fmt::format("<section id=\"{}\"{}>\n", id, beside ? " class=\"answer\"" : ""));
    if (s.folded) out("<details>\n<summary>");
    if (!s.heading.empty()) {
        out(
            fmt::format("<h2>{} <a class=\"anchor\" href=\"#{}\" aria-label=\"Link to this "
                        "part\">#</a></h2>\n",
                        shown(s.heading), id));
    }
    if (s.folded) out("</summary>\n");
    for (const section& part : sections) {
        if (!part.columns.empty()) write_body(part, links, out);
        if (beside) out("<div>\n");
        write_notes(part.notes, out);
        if (beside) out("</div>\n");
        write_figures(part.figures, false, ranges, out);
        write_figures(part.figures, true, ranges, out);
        if (part.all) html::write_explorer(*part.all, id, links, out);
    }
    out(s.folded ? "</details>\n</section>\n" : "</section>\n");
}

std::string scalar_text(const value& v) { return cell_text({{"", v}}, {"", "", cell::text}); }

std::string members_text(const record& r) {
    std::string text;
    for (const auto& [name, v] : r) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, scalar_text(v));
    }
    return text;
}

// The subject of the page: the members of the head that fit in a line, and the inputs.
void write_foot(const document& d, const sink& out) {
    if (d.head.empty()) return;
    out("<footer>\n<dl>\n");
    for (const auto& [name, v] : d.head) {
        const auto* items = std::get_if<list>(&v);
        const auto* members = std::get_if<record>(&v);
        if (items != nullptr && name == "inputs") {
            out(fmt::format("<dt>{}</dt>", shown(name)));
            for (const value& item : *items) {
                const auto* file = std::get_if<record>(&item);
                const std::string text = file != nullptr ? members_text(*file) : scalar_text(item);
                out(fmt::format("<dd>{}</dd>", html::shown_name(text)));
            }
            out(items->empty() ? "<dd>none</dd>\n" : "\n");
        } else if (members != nullptr && name == "tool") {
            out(fmt::format("<dt>{}</dt><dd>{}</dd>\n", shown(name),
                            shown(members_text(*members))));
        } else if (items == nullptr && members == nullptr) {
            out(fmt::format("<dt>{}</dt><dd>{}</dd>\n", shown(name),
                            html::shown_name(scalar_text(v))));
        }
    }
    out("</dl>\n</footer>\n");
}

}  // namespace

void write_html(const document& d, const layout& l, const sink& out) {
    const std::string title = l.title.empty() ? title_of(d) : l.title;
    html::anchors anchors;
    std::vector<std::string> ids;
    for (const section& s : d.sections) ids.push_back(anchors.claim(s.heading));
    const html::row_links links(d, ids);
    const shared_ranges ranges(d);

    write_head(title, out);
    out("<body>\n<div id=\"side\">\n");
    write_contents(d, ids, out);
    write_bar(metrics_of(d), out);
    out(fmt::format("</div>\n<div id=\"page\">\n<header><h1>{}</h1>\n", html::shown_name(title)));
    if (!d.subtitle.empty()) out(fmt::format("<p>{}</p>\n", shown(d.subtitle)));
    out("</header>\n<main>\n");
    const std::span all(d.sections);
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
        end = i + 1;
        while (all[i].folded && end < all.size() && all[end].heading.empty()) ++end;
        write_section(all.subspan(i, end - i), ids[i], i == 0, links, ranges, out);
    }
    out("</main>\n");
    write_foot(d, out);
    out("</div>\n<script>");
    out(html::page_js().text);
    out("</script>\n</body>\n</html>\n");
}

std::string fragment_of(const std::vector<section>& sections, const std::string& id) {
    document d;
    d.sections = sections;
    const html::row_links no_links({}, {});
    const shared_ranges ranges(d);
    std::string text =
        "<div class=\"libmx\">\n<style>" + std::string(svg::style_sheet()) + "</style>\n";
    const sink out = [&](std::string_view piece) { text += piece; };
    for (const section& s : sections) {
        if (!s.heading.empty()) out(fmt::format("<h4>{}</h4>\n", shown(s.heading)));
        if (!s.columns.empty()) write_body(s, no_links, out);
        write_notes(s.notes, out);
        for (const figure& given : s.figures) {
            figure f = ranges.over_range(given);
            f.id = id + f.id;
            out(fmt::format("<p><strong>{}</strong> {}</p>\n{}{}\n", shown(f.title),
                            shown(f.caption), svg::legend_of(f), svg::element_of(f)));
        }
    }
    return text + "</div>\n";
}

}  // namespace mx::report
