// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/html/figures.hpp"

#include <fmt/format.h>

#include <set>

#include "libmx/report/figure_data.hpp"
#include "libmx/report/html/base64.hpp"
#include "libmx/report/html/text.hpp"
#include "libmx/report/svg/svg.hpp"

namespace mx::report::html {
namespace {

void write_figure(const figure& f, const sink& out) {
    const std::string id = shown(f.id);
    out(fmt::format("<figure id=\"figure-{}\" data-metric=\"{}\">\n", id, shown(f.metric)));
    out(fmt::format("<figcaption><strong>{}</strong>{}\n", shown(f.title), shown(f.caption)));
    out(fmt::format("<a class=\"data\" download=\"{}.csv\" href=\"data:text/csv;base64,", id));
    out(base64(csv_of(f)));
    out("\">data as CSV</a></figcaption>\n<div class=\"scroll\">");
    out(svg::element_of(f));
    out("</div>\n</figure>\n");
}

void write_group(const std::vector<const figure*>& group, const sink& out) {
    out("<div class=\"alternatives\">\n");
    write_figure(*group.front(), out);
    if (group.size() > 1) {
        std::string metrics;
        for (std::size_t i = 1; i < group.size(); ++i) {
            metrics += (i == 1 ? "" : ", ") + shown(group[i]->metric);
        }
        out(fmt::format("<details>\n<summary>The same by {}</summary>\n", metrics));
        for (std::size_t i = 1; i < group.size(); ++i) write_figure(*group[i], out);
        out("</details>\n");
    }
    out("</div>\n");
}

}  // namespace

void write_figures(const std::vector<figure>& figures, const sink& out) {
    std::set<std::string> written;
    for (const figure& f : figures) {
        if (f.group.empty()) {
            write_figure(f, out);
        } else if (written.insert(f.group).second) {
            std::vector<const figure*> group;
            for (const figure& other : figures) {
                if (other.group == f.group) group.push_back(&other);
            }
            write_group(group, out);
        }
    }
}

}  // namespace mx::report::html
