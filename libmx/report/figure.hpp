// SPDX-License-Identifier: Apache-2.0
// Plots as data: what is drawn, not how. Like records, they are independent of tensors and recipes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mx::report {

/// An axis of a plot. Title and unit are shown; limits that are not set are computed from the data.
struct axis {
    std::string title;
    std::string unit;    ///< "", "dB", "bits", "share", ...
    bool log = false;    ///< values that are not positive are drawn at the low end
    bool share = false;  ///< 0..1 shown in percent
    std::optional<double> low, high;
};

/// A shaded interval of the x axis.
struct zone {
    std::string label;
    double from = 0, to = 0;
};

/// A horizontal line at a value of y: a limit or, without a label, a reference.
struct level {
    std::string label;
    double at = 0;
};

/// A point and its tooltip. Undefined y is a gap.
struct point {
    double x = 0;
    std::optional<double> y;
    std::string label;
    /// The range of the values whose mean, or the interval of what, is y; in a dot plot, x.
    std::optional<double> low = {}, high = {};
};

/// A heat map: rows x columns of shaded cells, with their values written where they fit.
struct heat_map {
    std::vector<std::string> rows, columns;
    axis value;
    bool larger_is_worse = true;                            ///< worse stands out from the paper
    std::vector<std::vector<std::optional<double>>> cells;  ///< by row and column
    std::vector<std::vector<std::string>> notes = {};  ///< of cells, for hovering; may be empty
    /// Values worse than this are marked, and shaded in another hue than the others.
    std::optional<double> limit = {};
};

/// Lines over numbers (layers, steps, block sizes), also distinguished by dash and marker. If
/// points have a low and a high, a band connects them. Lines of one name look the same in every
/// panel.
struct line_chart {
    struct line {
        std::string name;
        std::vector<point> points;
        std::string panel = {};  ///< panels are small, have common axes and follow in order
    };
    axis x, y;
    std::vector<line> lines;
    std::vector<zone> zones;
    std::vector<level> levels = {};
};

/// Histograms: one small panel per series with common axes. `edges` has one element more than
/// `counts`; counts are drawn as shares of their sum.
struct bar_chart {
    struct series {
        std::string name;
        std::vector<double> edges;
        std::vector<double> counts;
        std::vector<std::string> labels;  ///< of the bars, for hovering; may be empty
        std::vector<zone> zones;
    };
    axis x, y;
    std::vector<series> panels;
};

/// Labelled points; points of a group have the same shape and shade.
struct scatter_chart {
    struct mark {
        point at;
        std::string group;
        bool named = false;  ///< the label is written beside it
    };
    axis x, y;
    std::vector<mark> marks;
    /// Of a dot plot: the names of y = 0, 1, ..., from the bottom up, in place of the axis.
    std::vector<std::string> rows = {};
    /// Groups that always have a symbol and a legend entry, even without points, so that a symbol
    /// means the same in several charts. Other groups follow in order of appearance.
    std::vector<std::string> groups;
    std::vector<std::pair<double, double>> path;  ///< e.g. a Pareto front; may be empty
    std::string path_name;
    bool stepped = false;  ///< the path keeps its y up to the next x
    std::vector<zone> zones;
    std::vector<level> levels = {};
};

/// Stacked bars, one per category.
struct stacked_chart {
    std::vector<std::string> categories, parts;
    axis value;
    std::vector<std::vector<std::optional<double>>> cells;  ///< by category and part
    bool waterfall = false;  ///< a bar begins where the one above it ended
};

/// One of the charts.
struct plot : std::variant<heat_map, line_chart, bar_chart, scatter_chart, stacked_chart> {
    using variant::variant;
    // Defined in figure.cpp, so that they are compiled once.
    plot();
    plot(const plot&);
    plot(plot&&) noexcept;
    plot& operator=(const plot&);
    plot& operator=(plot&&) noexcept;
    ~plot();
};

/// A plot of a section. Figures of one `group` show the same data in different metrics; if the
/// destination can switch, it shows one at a time.
struct figure {
    std::string id;  ///< unique in the document, [a-z0-9-]
    std::string title;
    std::string caption;
    plot what;
    std::string group;   ///< "" or the name of the group it belongs to
    std::string metric;  ///< within the group
    bool more = false;   ///< folded at the end of its section; not on paper
};

/// A value per row, column and metric, for tables of thousands of rows with sorting, filtering and
/// a choice of metric.
struct explorer {
    struct metric {
        std::string name, title, unit, definition;
        bool share = false;                      ///< shown in percent
        bool larger_is_worse = true;             ///< decides the first order
        int digits = 4;                          ///< significant digits shown
        std::vector<std::vector<float>> values;  ///< by column and row; NaN is undefined
    };
    std::string row_title;                ///< "tensor"
    std::vector<std::string> rows;        ///< names
    std::vector<std::string> classes;     ///< of the rows: roles
    std::set<std::string> first_classes;  ///< rows of these come first, worst first
    std::string first_words;              ///< what such rows are called: "operands"
    std::vector<std::string> columns;     ///< recipes
    std::vector<metric> metrics;          ///< the first is shown first
};

}  // namespace mx::report
