// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/show_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "libmx/base/half.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/pages/views/format_facts.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/commands.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/show/scale_family.hpp"

namespace mx::pages {
namespace {

using mx::show::block_view;
using mx::show::element;
using mx::show::region;
using mx::show::tensor_view;
using report::cell;
using report::plural;

constexpr std::size_t shown_bands = 5;
constexpr std::size_t shown_elements = 64;
constexpr std::size_t most_row_points = 256;  // of a line over rows
constexpr std::uint64_t beside = 32;          // columns of maps shown side by side

std::string percent(double share) { return report::percent_text(share) + " %"; }

// The quantities of a map: of a cell, and of its block with the largest value.
struct quantity {
    const char* id;
    const char* title;
    double (*largest)(const region&);
    double (*mean)(const region&);
};

constexpr quantity error_quantity{"error", "error over RMS",
                                  [](const region& r) { return r.max_error; },
                                  [](const region& r) { return r.error(); }};
constexpr quantity underflow_quantity{"zero", "elements that become zero",
                                      [](const region& r) { return r.max_underflow; },
                                      [](const region& r) { return r.underflow_share(); }};
constexpr quantity clamp_quantity{
    "clamped", "clamped, or in saturated blocks",
    [](const region& r) { return r.saturated > 0 ? 1 : r.max_clamp; },
    [](const region& r) { return std::max(r.clamp_share(), r.saturated_share()); }};

// The characters of a map, from good to bad; worse ones are darker.
struct level {
    char sign;
    double up_to;
};
constexpr level levels[] = {{'.', 0},   {':', 0.02}, {'-', 0.05}, {'=', 0.1},     {'+', 0.15},
                            {'x', 0.2}, {'*', 0.3},  {'%', 0.5},  {'#', 0.999999}};
constexpr const char* legend =
    "Up to, in %: '.' 0, ':' 2, '-' 5, '=' 10, '+' 15, 'x' 20, '*' 30, '%' 50, '#' below 100, '@' "
    "100 or more; '!' NaN or Inf.";

char sign_of(const region& r, const quantity& q) {
    if (r.not_finite + r.poisoned != 0) return '!';
    for (const level& l : levels) {
        if (q.largest(r) <= l.up_to) return l.sign;
    }
    return '@';
}

std::string extents(std::uint64_t rows, std::uint64_t cols) {
    return fmt::format("{}x{}", rows, cols);
}

std::string map_cell_text(const tensor_view& v) {
    const show::map_layout& l = v.layout;
    if (l.tall * l.wide == 1) return "one block";
    if (l.folded) return fmt::format("the worst of {} blocks in a row", l.wide);
    return fmt::format("the worst of {} blocks", extents(l.tall, l.wide));
}

// Null if every x is 0 or no element counts.
report::value error_of(const region& r) { return r.x2 > 0 ? real(r.error()) : undefined(); }

std::string map_line(const tensor_view& v, std::uint64_t row, const quantity& q) {
    std::string line;
    for (std::uint64_t column = 0; column < v.layout.columns; ++column) {
        const region& r = v.cells[static_cast<std::size_t>(row * v.layout.columns + column)];
        if (r.blocks != 0) line += sign_of(r, q);
    }
    return line;
}

report::section character_map(const tensor_view& v, std::span<const quantity* const> quantities) {
    report::section s{.heading = "Map of blocks",
                      .columns = {{"block", "from\nblock", cell::integer}}};
    for (const quantity* q : quantities) s.columns.push_back({q->id, q->title, cell::name});
    for (std::uint64_t row = 0; row < v.layout.rows; ++row) {
        report::record line{{"block", integer(v.layout.block_of(row, 0))}};
        for (const quantity* q : quantities) line.emplace_back(q->id, map_line(v, row, *q));
        s.rows.push_back(std::move(line));
    }
    s.notes = {fmt::format("A character is {}. {}", map_cell_text(v), legend)};
    return s;
}

region total_of(const tensor_view& v) {
    region all;
    for (const region& r : v.bands) all.add_counts(r);
    return all;
}

std::string heading_of(const tensor_view& v) {
    return fmt::format("{} under {}", v.tensor.info().name, codec::to_string(v.recipe()));
}

// "14.31 % of the elements become zero (normal data 9.71 %; 6.8 % of the squared error)".
std::string loss_text(const tensor_view& v) {
    const analysis::result& r = v.results.front();
    const region all = total_of(v);
    if (all.clamp + all.underflow + all.saturated + all.poisoned == 0) {
        return "No element becomes zero or is clamped.";
    }
    const auto of_error = [](double share) {
        return std::isnan(share) ? std::string() : fmt::format("; {} of the error", percent(share));
    };
    std::string words = fmt::format(
        "{} of the elements become zero (normal data {}{}), {} are "
        "clamped ({}{})",
        percent(all.underflow_share()), percent(v.normal.underflow_rate),
        of_error(r.underflow_error_share), percent(all.clamp_share()), percent(v.normal.clamp_rate),
        of_error(r.clamp_error_share));
    if (all.saturated != 0) {
        words += fmt::format(", {} of the blocks saturate", percent(all.saturated_share()));
    }
    if (all.poisoned != 0) {
        words += fmt::format(", {} become NaN with their block", percent(all.poisoned_share()));
    }
    return words + ".";
}

report::section summary(const tensor_view& v) {
    const io::tensor_info& info = v.tensor.info();
    const analysis::result& r = v.results.front();
    const codec::recipe& recipe = v.recipe();
    report::section s{.heading = heading_of(v)};
    s.notes.push_back(fmt::format("{} {}, role {}: {} in {} of {}, scales {} by rule {}.",
                                  r.of->dtype, tensor::to_string(info.shape), r.of->role,
                                  plural(r.elements, "element"), plural(r.blocks, "block"),
                                  extents(v.geometry.grid.block_rows, v.geometry.grid.block_cols),
                                  recipe.scale_format->name, show::rule_text(recipe)));
    const block::grid& g = v.geometry.grid;
    if ((g.block_rows > g.over.rows || g.block_cols > g.over.cols) &&
        info.elements > g.block_rows * g.block_cols) {
        s.notes.push_back(fmt::format(
            "Every block is short: it holds {} elements, not {}. Padding fills the blocks.",
            extents(std::min(g.block_rows, g.over.rows), std::min(g.block_cols, g.over.cols)),
            extents(g.block_rows, g.block_cols)));
    }
    std::string errors;
    if (!std::isnan(r.sqnr_db)) {
        errors = fmt::format("SQNR {} dB (normal data {}); R-MSE {} of the RMS. ",
                             report::fixed_text(r.sqnr_db, 2),
                             report::fixed_text(v.normal.sqnr_db, 2), percent(r.nrmse));
    } else if (r.exact == 1) {
        errors = "Every value is kept. ";
    }
    s.notes.push_back(errors + loss_text(v));
    if (r.nan + r.inf != 0) {
        s.notes.push_back(fmt::format("{} {} NaN or Inf.", plural(r.nan + r.inf, "element"),
                                      r.nan + r.inf == 1 ? "is" : "are"));
    }
    if (recipe.rotate.what != transform::kind::none) {
        s.notes.push_back(
            "The recipe rotates: blocks, values x, codes and errors are of the rotated tensor. "
            "stored: the value of the file at the same position, which is not x.");
    }
    return s;
}

// The first row of a row of blocks, for matrices placed one below the other.
std::uint64_t row_of_line(const block::grid& g, std::uint64_t line) {
    return line / g.rows() * g.over.rows + line % g.rows() * g.block_rows;
}

std::uint64_t first_row_of(const tensor_view& v, std::size_t band) {
    return row_of_line(v.geometry.grid, band * v.band_lines);
}

// "24-47".
std::string band_name(const tensor_view& v, std::size_t band) {
    const block::grid& g = v.geometry.grid;
    const std::uint64_t from = band * v.band_lines;
    const std::uint64_t to = std::min(from + v.band_lines, v.layout.lines) - 1;
    const std::uint64_t first = first_row_of(v, band);
    const std::uint64_t last =
        std::min(row_of_line(g, to) + g.block_rows, (to / g.rows() + 1) * g.over.rows) - 1;
    return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

// The share of the tensor's squared error.
report::value part_of_error(const tensor_view& v, const region& r) {
    const double all = v.results.front().squared_error[0];
    return all > 0 ? real(r.error2 / all) : undefined();
}

// The order of the worst: poisoned, then by squared error beyond that of normal data.
std::pair<bool, double> worth(const tensor_view& v, const region& r) {
    return {r.poisoned != 0, r.excess(v.normal.nrmse * v.normal.nrmse)};
}

report::section bands_section(const tensor_view& v) {
    report::section s{.heading = "Worst rows"};
    if (v.bands.size() < 2) return s;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < v.bands.size(); ++i) {
        const region& r = v.bands[i];
        if (r.not_finite != 0 || r.error2 > 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return worth(v, v.bands[a]) > worth(v, v.bands[b]);
    });
    if (order.empty()) return s;
    order.resize(std::min(order.size(), shown_bands));
    s.columns =
        columns_of({"rows", "blocks", "error_share", "zero_share", "clamped_share",
                    "relative_error", column_of("worst", "its worst\nblock %", cell::share)});
    for (const std::size_t i : order) {
        const region& r = v.bands[i];
        s.add(band_name(v, i), r.blocks, part_of_error(v, r), r.underflow_share(), r.clamp_share(),
              error_of(r), r.max_error);
    }
    s.notes.push_back(fmt::format("{} of {}{}, by squared error beyond that of normal data.",
                                  order.size(), v.bands.size(),
                                  v.band_lines == 1 ? "" : " groups of rows"));
    return s;
}

std::string number(double x) {
    if (std::isnan(x)) return "NaN";
    if (std::isinf(x)) return x > 0 ? "Inf" : "-Inf";
    return report::significant_text(x, 4);
}

// "2^-6", or the number if scales are not powers of two.
std::string scale_text(const codec::recipe& r, double scale) {
    if (!r.scale_format->power_of_two() || !std::isfinite(scale) || !(scale > 0)) {
        return number(scale);
    }
    return fmt::format("2^{}", std::ilogb(scale));
}

report::value code_text(const codec::recipe& r, const block::block_stats& s) {
    return codec::scales_have_codes(r) ? text(hex_code(8, s.scale_code)) : undefined();
}

double amax_of(const block_view& b) {
    return static_cast<double>(base::float_from_bits(b.stats.x_max));
}

std::string at_text(const std::vector<std::uint64_t>& coordinates) {
    return fmt::format("[{}]", fmt::join(coordinates, ","));
}

report::section blocks_section(const tensor_view& v) {
    report::section s{
        .heading = "Worst blocks",
        .columns = columns_of({column_of("block", "block", cell::integer),
                               column_of("first", "from element"),
                               column_of("amax", "max |x|", cell::significant), "scale", "code",
                               "error_share", "zero", "clamped", "relative_error"})};
    for (const block_view& b : v.blocks) {
        s.add(b.index, at_text(b.first), number(amax_of(b)), scale_text(v.recipe(), b.scale),
              code_text(v.recipe(), b.stats), part_of_error(v, b.of), b.stats.count.underflow,
              b.stats.count.clamp, error_of(b.of));
    }
    s.notes.push_back(
        fmt::format("{} of {}: by squared error beyond that of normal data.", v.blocks.size(),
                    report::grouped(static_cast<std::int64_t>(v.geometry.grid.blocks()))));
    return s;
}

report::section rules_section(const tensor_view& v, const block_view& b) {
    report::section s{
        .heading = "The block under each scale rule",
        .columns = columns_of({"rule", "scale", "code", "clamped", "zero", "relative_error",
                               column_of("sqnr", "tensor's\nSQNR dB", cell::fixed, 2), "mark"})};
    double least = std::numeric_limits<double>::infinity();
    for (const show::rule_outcome& o : b.rules) {
        if (!std::isnan(o.scale)) least = std::min(least, o.stats.sum.error2);
    }
    for (const show::rule_outcome& o : b.rules) {
        const codec::recipe& r = v.family[o.recipe];
        const region of = show::region_of(o.stats);
        const bool best = !std::isnan(o.scale) && o.stats.sum.error2 == least;
        const char* mark = o.recipe != 0 ? (best ? "least" : "") : best ? "used, least" : "used";
        s.add(show::rule_text(r), scale_text(r, o.scale), code_text(r, o.stats),
              o.stats.count.clamp, o.stats.count.underflow, error_of(of),
              sqnr_cell(analysis::defined(v.results[o.recipe].sqnr_db),
                        v.results[o.recipe].exact == 1),
              mark);
    }
    s.notes.push_back(
        "used: the rule of the recipe, whose other settings are unchanged. least: no other rule "
        "here gives this block a smaller error.");
    return s;
}

std::string flags_of(const element& e) {
    if (e.clamped) return "clamped";
    if (e.underflow) return "to zero";
    return e.largest ? "largest" : "";
}

std::string place_in_block(const tensor_view& v, const block_view& b, const element& e) {
    const std::uint64_t from_first = e.index - b.first_index;
    const std::uint64_t row = from_first / v.geometry.grid.over.cols;
    const std::uint64_t column = from_first % v.geometry.grid.over.cols;
    if (b.rows > 1 && b.cols > 1) return fmt::format("{},{}", row, column);
    return fmt::format("{}", b.rows > 1 ? row : column);
}

report::section elements_section(const tensor_view& v, const block_view& b) {
    std::vector<element> shown = b.elements;
    if (shown.size() > shown_elements) {
        std::ranges::stable_sort(shown, [](const element& x, const element& y) {
            return std::abs(x.error()) > std::abs(y.error());
        });
        shown.resize(shown_elements);
        std::ranges::sort(shown, {}, &element::index);
    }
    const bool prepared = std::ranges::any_of(
        shown, [](const element& e) { return base::bits_of(e.stored) != base::bits_of(e.x); });
    report::section s{.heading = "Its elements", .columns = columns_of({"at"})};
    if (prepared) s.columns.push_back({"stored", "stored", cell::significant, 5});
    s.columns.insert(s.columns.end(), {{"x", "x", cell::significant, 5},
                                       {"y", "x / scale", cell::significant, 4},
                                       {"code", "code"},
                                       {"q", "q", cell::shortest},
                                       {"value", "decoded", cell::significant, 5},
                                       {"error", "error", cell::significant, 3},
                                       {"flag", ""}});
    const auto shown_number = [](double x) {
        return std::isfinite(x) ? report::value(x) : report::value(number(x));
    };
    for (const element& e : shown) {
        report::record row{{"at", place_in_block(v, b, e)}};
        if (prepared) row.emplace_back("stored", shown_number(static_cast<double>(e.stored)));
        row.emplace_back("x", shown_number(static_cast<double>(e.x)));
        row.emplace_back("y", shown_number(e.y));
        row.emplace_back("code", hex_code(v.recipe().element->bits(), e.code));
        row.emplace_back("q", shown_number(static_cast<double>(e.q)));
        row.emplace_back("value", shown_number(static_cast<double>(e.value)));
        row.emplace_back("error", shown_number(e.error()));
        row.emplace_back("flag", flags_of(e));
        s.rows.push_back(std::move(row));
    }
    if (shown.size() < b.size) {
        s.notes.push_back(fmt::format("{} of {}: those with the largest errors. --json has {}.",
                                      shown.size(), plural(b.size, "element"),
                                      report::grouped(static_cast<std::int64_t>(
                                          std::min<std::uint64_t>(b.size, show::most_elements)))));
    }
    s.notes.push_back(
        "q: the value of the code. clamped: beyond the largest value, and limited to it; largest: "
        "has the largest code without clamping; to zero: was not zero.");
    return s;
}

std::string block_scale_text(const tensor_view& v, const block_view& b) {
    const codec::recipe& r = v.recipe();
    if (std::isnan(b.scale)) return "The scale is NaN, and therefore every value of the block.";
    std::string words = fmt::format("Scale {}", scale_text(r, b.scale));
    if (codec::scales_have_codes(r)) {
        words += fmt::format(" (code {}", hex_code(8, b.stats.scale_code));
        const double tensor_scale = v.results.front().tensor_scale;
        if (codec::has_tensor_scale(r)) {
            words += fmt::format(": {}, times the tensor's {}",
                                 number(static_cast<double>(b.stats.scale)), number(tensor_scale));
        }
        words += ")";
    }
    const double reach =
        b.scale * static_cast<double>(format::decode(*r.element, r.element->max_code()));
    words += fmt::format(": the largest {} represents {}", r.element->name, number(reach));
    if (r.offset != codec::offset_kind::none) {
        words += fmt::format(" beside the offset {}", number(static_cast<double>(b.offset)));
    }
    return words + ".";
}

report::section block_summary(const tensor_view& v, const block_view& b) {
    report::section s;
    s.heading = fmt::format("Block {} of {}: elements {} to {}", b.index, v.tensor.info().name,
                            at_text(b.first), at_text(b.last));
    s.notes.push_back(fmt::format("max |x| {}. {}", number(amax_of(b)), block_scale_text(v, b)));
    const block::block_counts& c = b.stats.count;
    if (c.nan + c.inf != 0) {
        s.notes.push_back(fmt::format("{} NaN, {} Inf among {}; {} become NaN with the block.",
                                      c.nan, c.inf, plural(b.size, "element"), c.poisoned));
    }
    std::string losses =
        fmt::format("{}: {} to zero, {} clamped", plural(b.size, "element"), c.underflow, c.clamp);
    if (b.of.x2 > 0) losses += fmt::format("; error {} of the block's RMS", percent(b.of.error()));
    s.notes.push_back(losses + ".");
    return s;
}

// For tensor number `tensor` of the page, because ids of figures must be unique.
report::figure heat_figure(const tensor_view& v, std::size_t tensor, const quantity& q,
                           bool largest) {
    const show::map_layout& l = v.layout;
    report::heat_map map;
    map.value.title = fmt::format("{}, {}", q.title, largest ? "worst block" : "mean");
    map.value.share = true;
    if (&q != &error_quantity) {
        map.value.low = 0;
        map.value.high = 1;
    }
    for (std::uint64_t c = 0; c < l.columns; ++c)
        map.columns.push_back(fmt::format("+{}", c * l.wide));
    for (std::uint64_t r = 0; r < l.rows; ++r) {
        map.rows.push_back(fmt::format("block {}", l.block_of(r, 0)));
        map.cells.emplace_back();
        for (std::uint64_t c = 0; c < l.columns; ++c) {
            const region& of = v.cells[static_cast<std::size_t>(r * l.columns + c)];
            const bool known = of.blocks != 0 && of.not_finite + of.poisoned == 0;
            map.cells.back().push_back(known ? std::optional((largest ? q.largest : q.mean)(of))
                                             : std::nullopt);
        }
    }
    const std::string metric = map.value.title;
    return {fmt::format("map-{}{}-{}", q.id, largest ? "" : "-mean", tensor + 1),
            "Map of blocks: " + metric,
            fmt::format("A cell is {}. {}", map_cell_text(v),
                        v.layout.folded ? "Blocks continue from line to line."
                                        : "Rows and columns are those of the block grid."),
            std::move(map),
            fmt::format("map-{}", tensor + 1),
            metric};
}

report::figure rows_figure(const tensor_view& v, std::size_t tensor) {
    report::line_chart chart;
    chart.x.title = "row";
    chart.y.title = "share";
    chart.y.share = true;
    // A point is the worst of this many bands.
    const std::size_t together = (v.bands.size() + most_row_points - 1) / most_row_points;
    struct strip {
        const char* name;
        double (*of)(const region&);
    };
    for (const strip& s : {strip{"error over RMS", [](const region& r) { return r.error(); }},
                           strip{"to zero", [](const region& r) { return r.underflow_share(); }},
                           strip{"clamped", [](const region& r) { return r.clamp_share(); }}}) {
        report::line_chart::line line{s.name, {}};
        for (std::size_t i = 0; i < v.bands.size(); i += together) {
            std::size_t worst = i;
            for (std::size_t k = i; k < std::min(i + together, v.bands.size()); ++k) {
                if (s.of(v.bands[k]) > s.of(v.bands[worst])) worst = k;
            }
            line.points.push_back({static_cast<double>(first_row_of(v, worst)),
                                   s.of(v.bands[worst]), "rows " + band_name(v, worst)});
        }
        chart.lines.push_back(std::move(line));
    }
    return {fmt::format("rows-{}", tensor + 1),
            "Row by row",
            fmt::format("Each point is {}{}.",
                        together == 1 ? "" : fmt::format("the worst of {}: ", together),
                        v.band_lines == 1 ? std::string("a row of blocks")
                                          : fmt::format("{} rows of blocks", v.band_lines)),
            std::move(chart),
            "",
            ""};
}

void add_maps(report::section& s, const tensor_view& v, std::size_t tensor) {
    const region all = total_of(v);
    std::vector<const quantity*> shown{&error_quantity};
    for (const quantity* q : {&underflow_quantity, &clamp_quantity}) {
        if (q->mean(all) > 0) shown.push_back(q);
    }
    for (const quantity* q : shown) s.figures.push_back(heat_figure(v, tensor, *q, true));
    if (v.layout.tall * v.layout.wide > 1) {
        s.figures.push_back(heat_figure(v, tensor, error_quantity, false));
    }
    if (v.bands.size() > 1) s.figures.push_back(rows_figure(v, tensor));
}

}  // namespace

std::vector<report::section> tensor_sections(const tensor_view& v) {
    std::vector<report::section> sections{summary(v)};
    const std::array<const quantity*, 2> both{&error_quantity, &clamp_quantity};
    const std::span all(both.data(), clamp_quantity.mean(total_of(v)) == 0 ? 1 : 2);
    if (v.layout.columns <= beside) {
        sections.push_back(character_map(v, all));
    } else {
        for (std::size_t i = 0; i < all.size(); ++i) {
            sections.push_back(character_map(v, all.subspan(i, 1)));
        }
    }
    put(sections, bands_section(v));
    sections.push_back(blocks_section(v));
    if (!v.blocks.empty()) {
        sections.back().notes.push_back(fmt::format(
            "The same command with --block-index {} shows the values and codes of a block "
            "and each scale rule.",
            v.blocks.front().index));
    }
    return sections;
}

std::vector<report::section> block_sections(const tensor_view& v, const block_view& b) {
    return {block_summary(v, b), rules_section(v, b), elements_section(v, b)};
}

std::vector<report::section> show_page_sections(std::span<const tensor_view> views) {
    std::vector<report::section> sections;
    for (std::size_t t = 0; t < views.size(); ++t) {
        const tensor_view& v = views[t];
        report::section head = summary(v);
        add_maps(head, v, t);
        sections.push_back(std::move(head));
        put(sections, bands_section(v));
        sections.push_back(blocks_section(v));
        for (const block_view& b : v.blocks) {
            // One line per block is enough in the table of contents.
            std::vector<report::section> of = block_sections(v, b);
            for (std::size_t i = 0; i < of.size(); ++i) {
                if (i > 0) of[i].heading.clear();
                sections.push_back(std::move(of[i]));
            }
        }
    }
    return sections;
}

std::vector<report::section> worst_blocks_sections(std::span<const tensor_view> views) {
    std::vector<report::section> sections;
    for (std::size_t t = 0; t < views.size(); ++t) {
        const tensor_view& v = views[t];
        report::section& said = sections.emplace_back(summary(v));
        said.heading = "Blocks of " + v.tensor.info().name;
        said.folded = true;
        said.notes.front().text =
            fmt::format("Under {}. {}", codec::to_string(v.recipe()), said.notes.front().text);
        add_maps(said, v, t);
        // Maps after the first are folded: they show other metrics than the page.
        bool first = true;
        for (report::figure& f : said.figures) {
            f.more = !f.group.empty() && !std::exchange(first, false);
            f.group.clear();
            f.metric.clear();
        }
        std::vector<report::section> behind{blocks_section(v)};
        if (!v.blocks.empty()) {
            const block_view& worst = v.blocks.front();
            for (report::section& s : block_sections(v, worst)) behind.push_back(std::move(s));
            behind[1].notes.insert(behind[1].notes.begin(), behind[1].heading + ".");
        }
        for (report::section& s : behind) {
            s.heading.clear();
            s.folded = true;
            sections.push_back(std::move(s));
        }
    }
    return sections;
}

report::section worst_tensors_section(std::span<const tensor_view> views, std::size_t operands,
                                      const report::given_command& by) {
    report::section s{
        .heading = fmt::format("The worst {} of {}", views.size(), plural(operands, "operand")),
        .columns = columns_of({"tensor", "role", column_of("sqnr", "SQNR\ndB", cell::fixed, 2),
                               column_of("normal", "normal\ndata", cell::fixed, 2), "zero_share",
                               "clamped_share", column_of("block", "worst\nblock", cell::integer),
                               column_of("block_error", "its error\n/ RMS %", cell::share)})};
    for (const tensor_view& v : views) {
        const region all = total_of(v);
        const block_view& b = v.blocks.front();
        s.add(v.tensor.info().name, v.results.front().of->role,
              sqnr_cell(analysis::defined(v.results.front().sqnr_db), v.results.front().exact == 1),
              v.normal.sqnr_db, all.underflow_share(), all.clamp_share(), b.index, error_of(b.of));
    }
    s.notes = {
        "By error relative to the RMS. Operands: matrices of weights, activations "
        "and gradients; norms, biases, routers and embeddings are left out."};
    if (!views.empty()) {
        const tensor_view& v = views.front();
        s.notes.push_back("The blocks of one:");
        const io::tensor_info& info = v.tensor.info();
        s.notes.push_back(report::command(
            policy::show_command(&by, info.file, info.name, codec::to_string(v.recipe()))));
    }
    return s;
}

}  // namespace mx::pages
