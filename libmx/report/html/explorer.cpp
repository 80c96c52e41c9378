// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/html/explorer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "libmx/report/cells.hpp"
#include "libmx/report/html/text.hpp"

namespace mx::report::html {
namespace {

constexpr float undefined = std::numeric_limits<float>::quiet_NaN();

// Must match the formatting in page.js.
std::string value_text(float x, const explorer::metric& m) {
    if (std::isnan(x)) return "-";
    return m.share ? percent_text(x) : significant_text(x, m.digits);
}

// The worst value of a row over all columns.
float worst_of(const explorer::metric& m, std::size_t row) {
    float worst = undefined;
    for (const std::vector<float>& column : m.values) {
        const float x = column[row];
        if (std::isnan(worst) || (m.larger_is_worse ? x > worst : x < worst)) worst = x;
    }
    return worst;
}

// Rows sorted from the worst, undefined ones last; stable.
std::vector<std::size_t> worst_first(const explorer& e) {
    const explorer::metric& m = e.metrics.front();
    std::vector<float> worst(e.rows.size());
    for (std::size_t row = 0; row < worst.size(); ++row) worst[row] = worst_of(m, row);
    std::vector<std::size_t> order(e.rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto later = [&](std::size_t row) {
        return !e.first_classes.empty() && !e.first_classes.contains(e.classes[row]);
    };
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        if (later(a) != later(b)) return later(b);
        if (std::isnan(worst[a]) || std::isnan(worst[b])) {
            return !std::isnan(worst[a]) && std::isnan(worst[b]);
        }
        return m.larger_is_worse ? worst[a] > worst[b] : worst[a] < worst[b];
    });
    return order;
}

// Classes in order of first appearance, with their number of rows.
struct class_list {
    std::vector<std::string> names;
    std::vector<std::size_t> counts;
    std::vector<std::size_t> of_row;
};

class_list classes_of(const explorer& e) {
    class_list list;
    std::map<std::string, std::size_t> places;
    for (const std::string& name : e.classes) {
        const auto [at, added] = places.emplace(name, list.names.size());
        if (added) {
            list.names.push_back(name);
            list.counts.push_back(0);
        }
        ++list.counts[at->second];
        list.of_row.push_back(at->second);
    }
    return list;
}

std::string order_text(const explorer& e) {
    const explorer::metric& m = e.metrics.front();
    const std::string_view end = m.larger_is_worse ? "largest" : "smallest";
    const std::string before =
        e.first_words.empty() ? "" : fmt::format(", {} before others", e.first_words);
    if (e.rows.size() <= explorer_rows) {
        return fmt::format("{}, the {} {} in any column first{}.",
                           plural(e.rows.size(), e.row_title), end, m.title, before);
    }
    return fmt::format("The {} of {} with the {} {} in any column, worst first{}.", explorer_rows,
                       plural(e.rows.size(), e.row_title), end, m.title, before);
}

std::string definition_text(const explorer::metric& m) {
    std::string unit = m.share ? "%" : m.unit;
    if (!unit.empty()) unit = " in " + unit;
    return m.title + unit + (m.definition.empty() ? "" : ": " + m.definition);
}

void write_controls(const explorer& e, const class_list& classes, const std::string& id,
                    const sink& out) {
    out("<div class=\"controls\" hidden>\n");
    out(
        fmt::format("<label>{} <input type=\"search\" class=\"filter\" placeholder=\"regular "
                    "expression\" spellcheck=\"false\" autocomplete=\"off\" "
                    "aria-describedby=\"{}-problem\"></label>\n",
                    shown(e.row_title), id));
    out("<label>class <select class=\"class\"><option value=\"\">all</option>");
    for (std::size_t i = 0; i < classes.names.size(); ++i) {
        out(fmt::format("<option value=\"{}\">{} ({})</option>", i, shown(classes.names[i]),
                        grouped(static_cast<std::int64_t>(classes.counts[i]))));
    }
    out("</select></label>\n"
        "<button type=\"button\" class=\"reset\">Worst first</button>\n"
        "<button type=\"button\" class=\"save\">Save the shown rows as CSV</button>\n</div>\n");
    out(fmt::format("<p class=\"problem\" id=\"{}-problem\" role=\"alert\"></p>\n", id));
}

void write_table(const explorer& e, const std::string& id, const sink& out) {
    const explorer::metric& m = e.metrics.front();
    out("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    out(fmt::format("<th scope=\"col\" class=\"name\">{}</th><th scope=\"col\">class</th>",
                    shown(e.row_title)));
    for (const std::string& column : e.columns) {
        out(fmt::format("<th scope=\"col\" class=\"n\">{}</th>", shown_name(column)));
    }
    out("</tr></thead>\n<tbody>\n");
    const std::vector<std::size_t> order = worst_first(e);
    for (std::size_t i = 0; i < std::min(order.size(), explorer_rows); ++i) {
        const std::size_t row = order[i];
        std::string line = fmt::format("<tr id=\"{}-row-{}\"><td class=\"name\">{}</td><td>{}</td>",
                                       id, row, shown_name(e.rows[row]), shown(e.classes[row]));
        for (const std::vector<float>& column : m.values) {
            line += fmt::format("<td class=\"n\">{}</td>", shown(value_text(column[row], m)));
        }
        out(line + "</tr>\n");
    }
    out("</tbody>\n</table></div>\n");
}

template <typename Items, typename Print>
void write_array(std::string_view name, const Items& items, const sink& out, Print print) {
    out(fmt::format("\"{}\":[", name));
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out(",");
        out(print(items[i]));
    }
    out("]");
}

// Values by column as float32 in base64: a third longer than binary, for any value. Decimal digits
// that round-trip would need twice as much.
void write_data(const explorer& e, const class_list& classes, const sink& out) {
    const auto text = [](const std::string& s) { return quoted(s); };
    out("<script type=\"application/json\">\n{");
    out(fmt::format("\"page\":{},\"row_title\":{},\n", explorer_rows, quoted(e.row_title)));
    write_array("columns", e.columns, out, text);
    out(",\n");
    write_array("classes", classes.names, out, text);
    out(fmt::format(",\n\"first_words\":{},\n", quoted(e.first_words)));
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < classes.names.size(); ++i) {
        if (e.first_classes.contains(classes.names[i])) first.push_back(i);
    }
    write_array("first", first, out, [](std::size_t i) { return std::to_string(i); });
    out(",\n");
    write_array("class_of_row", classes.of_row, out,
                [](std::size_t place) { return fmt::format("{}", place); });
    out(",\n\"metrics\":[");
    for (std::size_t i = 0; i < e.metrics.size(); ++i) {
        const explorer::metric& m = e.metrics[i];
        out(
            fmt::format("{}\n{{\"name\":{},\"title\":{},\"words\":{},\"share\":{},"
                        "\"larger_is_worse\":{},\"digits\":{},\n",
                        i == 0 ? "" : ",", quoted(m.name), quoted(m.title),
                        quoted(definition_text(m)), m.share, m.larger_is_worse, m.digits));
        write_array("values", m.values, out, [](const std::vector<float>& column) {
            return '"' + base64_floats(column) + '"';
        });
        out("}");
    }
    out("],\n");
    write_array("rows", e.rows, out, text);
    out("}\n</script>\n");
}

}  // namespace

row_links::row_links(const document& d, const std::vector<std::string>& ids) {
    for (std::size_t s = 0; s < ids.size(); ++s) {
        if (!d.sections[s].all) continue;
        const std::vector<std::string>& rows = d.sections[s].all->rows;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            ids_.emplace(rows[row], fmt::format("{}-row-{}", ids[s], row));
        }
    }
    if (ids_.empty()) return;
    for (const section& s : d.sections) {
        for (const column& c : s.columns) {
            if (c.kind != cell::name) continue;
            for (const record& r : s.rows) {
                if (const std::string id = id_of(cell_text(r, c)); !id.empty()) led_to_.insert(id);
            }
        }
    }
}

std::string row_links::id_of(const std::string& name) const {
    const auto at = ids_.find(name);
    return at == ids_.end() ? std::string() : at->second;
}

void write_explorer(const explorer& e, const std::string& section, const row_links& links,
                    const sink& out) {
    if (e.rows.empty() || e.metrics.empty()) return;
    const class_list classes = classes_of(e);
    const std::string id = section + "-all";
    out(fmt::format("<div class=\"explorer\" id=\"{}\" data-rows=\"{}\">\n", id, section));
    // Link targets, without the script, for rows that are not in the static table.
    const std::vector<std::size_t> order = worst_first(e);
    std::string elsewhere;
    for (std::size_t i = explorer_rows; i < order.size(); ++i) {
        const std::string row = fmt::format("{}-row-{}", section, order[i]);
        if (links.led_to(row)) elsewhere += fmt::format("<a id=\"{}\"></a>", row);
    }
    if (!elsewhere.empty()) out("<div class=\"elsewhere\">" + elsewhere + "</div>\n");
    write_controls(e, classes, id, out);
    out(fmt::format("<p class=\"state\" aria-live=\"polite\">{}</p>\n", shown(order_text(e))));
    out(fmt::format("<p class=\"words\">{}</p>\n", shown(definition_text(e.metrics.front()))));
    write_table(e, section, out);
    out("<div class=\"pages\" hidden><button type=\"button\" class=\"back\">Back</button> "
        "<span></span> <button type=\"button\" class=\"next\">Next</button></div>\n");
    write_data(e, classes, out);
    out("</div>\n");
}

}  // namespace mx::report::html
