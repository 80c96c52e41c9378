// SPDX-License-Identifier: Apache-2.0
// Pages for the browser test, and their expected contents.
// Usage: mx_browser_pages FOLDER
// Writes into FOLDER, for each page, NAME.html and NAME.json: the values of its table of all rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/report/writers.hpp"

namespace {

using namespace mx::report;

constexpr std::size_t metrics_checked = 3;
constexpr float undefined = std::numeric_limits<float>::quiet_NaN();

// Numbers of every size; the same for every run.
class numbers {
  public:
    double next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state_ >> 11) * 0x1p-53;
    }

  private:
    std::uint64_t state_ = 7;
};

// Possible tensor names in a checkpoint: markup, quotes, line separators, bytes that are not UTF-8,
// names with a meaning in regular expressions or spreadsheets.
const std::vector<std::string> hostile_names{
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "\"' onmouseover='alert(4)' \"",
    "line\xe2\x80\xa8separator\xe2\x80\xa9"
    "end",
    "invalid \xff\xc3 bytes",
    "right \xe2\x80\xae"
    "to left",
    "&lt;b&gt; &amp; ${alert(5)} `${alert(6)}`",
    "<!--<script>",
    "]]> a,b \"c\"\r\nd",
    "\xc3\xbc\xe2\x82\xac\xf0\x9f\x99\x82",
    ".*+?^$()[]{}|\\",
};

std::string layer_name(std::size_t row) {
    const std::vector<std::string> parts{"self_attn.q_proj.weight", "self_attn.o_proj.weight",
                                         "mlp.up_proj.weight",      "mlp.down_proj.weight",
                                         "input_layernorm.weight",  "mlp.down_proj.bias"};
    return "model.layers." + std::to_string(row / parts.size()) + "." + parts[row % parts.size()];
}

std::string class_name(const std::string& name) {
    if (name.find("norm") != std::string::npos) return "norm";
    return name.find("bias") != std::string::npos ? "bias" : "weight";
}

explorer made_explorer(std::size_t rows, std::size_t metrics, bool hostile) {
    explorer e;
    e.row_title = "tensor";
    for (std::size_t i = 0; i < rows; ++i) {
        const bool odd = hostile && i % 11 == 3 && i / 11 < hostile_names.size();
        e.rows.push_back(odd ? hostile_names[i / 11] : layer_name(i));
        e.classes.push_back(odd ? hostile_names.front() : class_name(e.rows.back()));
    }
    e.columns = {"mxfp8", "mxfp8:scale=even", "mxfp8:scale=rceil",
                 "mxfp6", "mxfp6:scale=even", "mxfp6:scale=rceil",
                 "mxfp4", "mxfp4:scale=even", "mxfp4:scale=rceil"};
    if (hostile) e.columns.back() = hostile_names[1];
    numbers random;
    for (std::size_t k = 0; k < metrics; ++k) {
        explorer::metric m;
        m.name = k == 0   ? "nrmse"
                 : k == 1 ? "sqnr_db"
                 : k == 2 ? "clamp_rate"
                          : "metric_" + std::to_string(k);
        m.title = k == 0 ? "NRMSE" : k == 1 ? "SQNR" : k == 2 ? "clamp rate" : m.name;
        m.unit = k == 1 ? "dB" : "";
        m.definition = "the definition of <" + m.name + ">.";
        m.larger_is_worse = k != 1;
        m.share = k == 2;
        for (std::size_t c = 0; c < e.columns.size(); ++c) {
            std::vector<float> values(rows);
            for (float& x : values) {
                const double u = random.next();
                // Every twentieth is undefined, every tenth equal to others.
                x = static_cast<float>(k == 1   ? 60 * u
                                       : k == 2 ? u * u * u
                                                : std::exp(20 * u - 18));
                if (random.next() < 0.05) x = undefined;
                if (random.next() < 0.1) x = 0.25f;
            }
            // A value that all rows share is in the page once.
            if (k == 2 && c == 1) values.assign(rows, 0.0f);
            m.values.push_back(std::move(values));
        }
        e.metrics.push_back(std::move(m));
    }
    return e;
}

figure heat_of(const explorer& e, std::size_t metric) {
    heat_map map;
    map.columns = e.columns;
    map.value = {e.metrics[metric].title,
                 e.metrics[metric].unit,
                 metric == 0,
                 e.metrics[metric].share,
                 {},
                 {}};
    map.larger_is_worse = e.metrics[metric].larger_is_worse;
    for (std::size_t row = 0; row < std::min<std::size_t>(24, e.rows.size()); ++row) {
        map.rows.push_back(e.rows[row]);
        std::vector<std::optional<double>> line;
        for (const auto& column : e.metrics[metric].values) {
            if (std::isnan(column[row])) {
                line.emplace_back();
            } else {
                line.emplace_back(static_cast<double>(column[row]));
            }
        }
        map.cells.push_back(std::move(line));
    }
    figure f;
    f.id = "heat-" + std::to_string(metric);
    f.title = e.metrics[metric].title + " by layer and recipe";
    f.caption = "The first rows of the table, " + hostile_names.front() + ".";
    f.what = std::move(map);
    f.group = "heat";
    f.metric = e.metrics[metric].name;
    return f;
}

figure lines_of(const explorer& e) {
    line_chart chart;
    chart.x = {"layer", "", false, false, {}, {}};
    chart.y = {"SQNR", "dB", false, false, {}, {}};
    for (const std::size_t c : {0u, 6u, 8u}) {
        line_chart::line line;
        line.name = e.columns[c];
        for (std::size_t row = 0; row < 16; ++row) {
            const float y = e.metrics[1].values[c][row];
            point p;
            p.x = static_cast<double>(row);
            if (!std::isnan(y)) p.y = static_cast<double>(y);
            p.label = e.rows[row];
            line.points.push_back(std::move(p));
        }
        chart.lines.push_back(std::move(line));
    }
    figure f;
    f.id = "lines";
    f.title = "SQNR by layer";
    f.caption = "Without a group: always there.";
    f.what = std::move(chart);
    return f;
}

section table_section(const explorer& e) {
    section s;
    s.heading = "A table in groups";
    s.columns = {{"tensor", "tensor", cell::name},
                 {"words", "in words", cell::text},
                 {"elements", "elements", cell::integer},
                 {"rate", "clamp %\nbefore", cell::share},
                 {"after", "\nafter", cell::significant, 3}};
    s.group_field = "class";
    for (std::size_t row = 0; row < std::min<std::size_t>(40, e.rows.size()); ++row) {
        s.rows.push_back({{"tensor", e.rows[row]},
                          {"words", "said of " + e.classes[row]},
                          {"elements", static_cast<std::int64_t>(1000 * row * row)},
                          {"rate", 0.01 * static_cast<double>(row)},
                          {"after", 1.0 / (1.0 + static_cast<double>(row))},
                          {"class", e.classes[row]}});
    }
    s.notes = {"A paragraph with " + hostile_names.front() + " in it.", "- one item",
               "- another item, " + hostile_names[2], "A last paragraph."};
    return s;
}

document made_document(const explorer& e, const std::string& title) {
    document d;
    d.title = title;
    d.head = {
        {"schema", std::string("mx.browser/1")},
        {"tool", record{{"name", std::string("mx")}}},
        {"inputs", list{value(record{{"path", hostile_names[1]}, {"bytes", std::int64_t{12}}})}}};
    d.sections.push_back({"Verdict", {}, {}, {}, {"What is to be said first."}});
    d.sections.push_back(table_section(e));
    section figures;
    figures.heading = "Figures";
    for (std::size_t k = 0; k < std::min<std::size_t>(3, e.metrics.size()); ++k) {
        figures.figures.push_back(heat_of(e, k));
    }
    figures.figures.push_back(lines_of(e));
    d.sections.push_back(std::move(figures));
    section all;
    all.heading = "All tensors";
    all.all = e;
    d.sections.push_back(std::move(all));
    return d;
}

template <typename Write>
void save(const std::string& path, Write write) {
    std::ofstream file(path, std::ios::binary);
    write([&](std::string_view text) {
        file.write(text.data(), static_cast<std::streamsize>(text.size()));
    });
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
}

// The truth by the JSON writer: the values of a metric by column and row.
document truth_of(const explorer& e) {
    document d;
    // As pages and tables show them.
    const auto texts = [](const std::vector<std::string>& all) {
        list shown;
        for (const std::string& text : all) shown.emplace_back(mx::base::printable(text));
        return shown;
    };
    d.head.emplace_back("columns", texts(e.columns));
    list metrics;
    for (std::size_t k = 0; k < metrics_checked; ++k) {
        const explorer::metric& m = e.metrics[k];
        list columns;
        for (const auto& column : m.values) {
            list values;
            for (const float x : column) {
                values.push_back(std::isnan(x) ? value() : value(static_cast<double>(x)));
            }
            columns.emplace_back(std::move(values));
        }
        metrics.emplace_back(record{{"name", m.name},
                                    {"larger_is_worse", m.larger_is_worse},
                                    {"values", std::move(columns)}});
    }
    d.head.emplace_back("metrics", std::move(metrics));
    d.head.emplace_back("rows", texts(e.rows));
    d.head.emplace_back("classes", texts(e.classes));
    return d;
}

void make(const std::string& folder, const std::string& name, const explorer& e,
          const std::string& title) {
    const document page = made_document(e, title);
    save(folder + "/" + name + ".html", [&](const sink& out) { write_html(page, {}, out); });
    const document truth = truth_of(e);
    save(folder + "/" + name + ".json", [&](const sink& out) { write_json(truth, {}, out); });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: mx_browser_pages FOLDER\n";
        return 2;
    }
    try {
        make(argv[1], "small", made_explorer(260, 3, true), "Two hundred and sixty tensors");
        make(argv[1], "large", made_explorer(10000, 9, false), "Ten thousand tensors");
        make(argv[1], "hostile", made_explorer(60, 3, true), hostile_names[1]);
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
