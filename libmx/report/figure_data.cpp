// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/figure_data.hpp"

#include <fmt/format.h>

#include <cmath>

#include "libmx/base/status.hpp"
#include "libmx/report/markup.hpp"

namespace mx::report {
namespace {

std::string number(std::optional<double> x) {
    return x && std::isfinite(*x) ? fmt::format("{}", *x) : std::string();
}

std::string text(const std::string& s) { return csv_field(base::printable(s)); }

std::string title(const axis& a, const std::string& otherwise) {
    return text(a.title.empty() ? otherwise : a.title);
}

// The names of the zones that intersect [from, to]; a point has from == to.
std::string zones_at(const std::vector<zone>& zones, double from, double to) {
    std::string names;
    for (const zone& z : zones) {
        const bool inside =
            from == to ? from >= z.from && from <= z.to : from < z.to && to > z.from;
        if (inside) names += (names.empty() ? "" : "; ") + z.label;
    }
    return text(names);
}

std::string matrix(const std::string& corner, const std::vector<std::string>& rows,
                   const std::vector<std::string>& columns,
                   const std::vector<std::vector<std::optional<double>>>& cells) {
    std::string out;
    std::vector<std::string> line{corner};
    for (const std::string& column : columns) line.push_back(text(column));
    out += csv_line(line);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        line = {text(rows[r])};
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const bool there = r < cells.size() && c < cells[r].size();
            line.push_back(there ? number(cells[r][c]) : std::string());
        }
        out += csv_line(line);
    }
    return out;
}

struct csv {
    std::string operator()(const heat_map& p) const {
        return matrix("row", p.rows, p.columns, p.cells);
    }

    std::string operator()(const stacked_chart& p) const {
        return matrix("category", p.categories, p.parts, p.cells);
    }

    std::string operator()(const line_chart& p) const {
        std::string out;
        out += csv_line(
            {"panel", "line", title(p.x, "x"), title(p.y, "y"), "low", "high", "label", "zone"});
        for (const line_chart::line& line : p.lines) {
            for (const point& at : line.points) {
                out += csv_line({text(line.panel), text(line.name), number(at.x), number(at.y),
                                 number(at.low), number(at.high), text(at.label),
                                 zones_at(p.zones, at.x, at.x)});
            }
        }
        return out;
    }

    std::string operator()(const bar_chart& p) const {
        std::string out;
        out += csv_line({"series", "from", "to", "count", "share", "label", "zone"});
        for (const bar_chart::series& s : p.panels) {
            double sum = 0;
            for (const double n : s.counts) sum += std::isfinite(n) ? n : 0;
            for (std::size_t i = 0; i < s.counts.size() && i + 1 < s.edges.size(); ++i) {
                const std::optional<double> share =
                    sum > 0 ? std::optional(s.counts[i] / sum) : std::nullopt;
                out += csv_line({text(s.name), number(s.edges[i]), number(s.edges[i + 1]),
                                 number(s.counts[i]), number(share),
                                 i < s.labels.size() ? text(s.labels[i]) : std::string(),
                                 zones_at(s.zones, s.edges[i], s.edges[i + 1])});
            }
        }
        return out;
    }

    std::string operator()(const scatter_chart& p) const {
        std::string out;
        out +=
            csv_line({"group", "label", title(p.x, "x"), title(p.y, "y"), "low", "high", "zone"});
        for (const scatter_chart::mark& m : p.marks) {
            out +=
                csv_line({text(m.group), text(m.at.label), number(m.at.x), number(m.at.y),
                          number(m.at.low), number(m.at.high), zones_at(p.zones, m.at.x, m.at.x)});
        }
        const std::string path = p.path_name.empty() ? "path" : p.path_name;
        for (const auto& [x, y] : p.path) {
            out +=
                csv_line({text(path), "", number(x), number(y), "", "", zones_at(p.zones, x, x)});
        }
        return out;
    }
};

}  // namespace

std::string csv_of(const figure& f) { return std::visit(csv{}, f.what); }

}  // namespace mx::report
