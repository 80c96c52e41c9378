// SPDX-License-Identifier: Apache-2.0
// Plots as data: what is drawn, not how. Like records, they know nothing of tensors or recipes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mx::report {

/// An axis of a plot. Title and unit are shown; limits that are not set follow from the data.
struct axis {
    std::string title;
    std::string unit;    ///< "", "dB", "bits", "share", ...
    bool log = false;    ///< values that are not positive are drawn at the low end
    bool share = false;  ///< 0..1 shown in percent
    std::optional<double> low, high;
};

/// A shaded stretch of the x axis.
struct zone {
    std::string label;
    double from = 0, to = 0;
};

/// A line across the plot at a value of y: a floor, a limit.
struct level {
    std::string label;
    double at = 0;
};

/// A point with what hovering says. Undefined y is a gap.
struct point {
    double x = 0;
    std::optional<double> y;
    std::string label;
    std::optional<double> low = {}, high = {};  ///< range of the values whose mean is y
};

/// Rows x columns of shaded cells with their values written in where they fit.
struct heat_map {
    std::vector<std::string> rows, columns;
    axis value;
    bool larger_is_worse = true;                            ///< worse stands out from the paper
    std::vector<std::vector<std::optional<double>>> cells;  ///< by row and column
    std::vector<std::vector<std::string>> notes = {};  ///< of cells, for hovering; may be empty
    /// Values worse than this are marked, and shaded in another hue than those that are not.
    std::optional<double> limit = {};
};

/// Lines over numbers (layers, steps, block sizes), told apart by dash and marker as well. Where
/// points have a low and a high, a band lies between them.
struct line_chart {
    struct line {
        std::string name;
        std::vector<point> points;
    };
    axis x, y;
    std::vector<line> lines;
    std::vector<zone> zones;
    std::vector<level> levels = {};
};

/// Histograms: one small panel per series, all with the same axes. `edges` has one more than
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

/// Labelled points; those of a group share shape and shade.
struct scatter_chart {
    struct mark {
        point at;
        std::string group;
        bool named = false;  ///< the label is written beside it
    };
    axis x, y;
    std::vector<mark> marks;
    /// Groups that have their sign and their place in the legend whether or not they have marks, so
    /// that a sign means the same in several charts. Others follow as they come.
    std::vector<std::string> groups;
    std::vector<std::pair<double, double>> path;  ///< e.g. a Pareto front; may be empty
    std::string path_name;
    bool stepped = false;  ///< the path keeps its y up to the next x
    std::vector<zone> zones;
    std::vector<level> levels = {};
};

/// Bars in parts, one bar per category.
struct stacked_chart {
    std::vector<std::string> categories, parts;
    axis value;
    std::vector<std::vector<std::optional<double>>> cells;  ///< by category and part
    bool waterfall = false;  ///< a bar begins where the one above it ended
};

/// One of the charts.
struct plot : std::variant<heat_map, line_chart, bar_chart, scatter_chart, stacked_chart> {
    using variant::variant;
    // In figure.cpp, so that they are compiled once.
    plot();
    plot(const plot&);
    plot(plot&&) noexcept;
    plot& operator=(const plot&);
    plot& operator=(plot&&) noexcept;
    ~plot();
};

/// A plot of a section. Figures of one `group` show the same thing by different metrics; one of
/// them is seen at a time where the destination can switch.
struct figure {
    std::string id;  ///< unique in the document, [a-z0-9-]
    std::string title;
    std::string caption;
    plot what;
    std::string group;   ///< "" or the name of the group it belongs to
    std::string metric;  ///< within the group
    bool more = false;   ///< folded at the end of its section; not on paper
};

/// A value per row, column and metric, for tables of thousands of rows that can be sorted,
/// filtered and switched from one metric to another.
struct explorer {
    struct metric {
        std::string name, title, unit, definition;
        bool share = false;                      ///< shown in percent
        bool larger_is_worse = true;             ///< decides the first order
        int digits = 4;                          ///< significant digits shown
        std::vector<std::vector<float>> values;  ///< by column and row; NaN is undefined
    };
    std::string row_title;             ///< "tensor"
    std::vector<std::string> rows;     ///< names
    std::vector<std::string> classes;  ///< of the rows: roles
    std::vector<std::string> columns;  ///< recipes
    std::vector<metric> metrics;       ///< the first is shown first
};

}  // namespace mx::report
