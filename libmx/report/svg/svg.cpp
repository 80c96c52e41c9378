// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/svg.hpp"

#include <cmath>
#include <variant>

#include "libmx/report/svg/markers.hpp"
#include "libmx/report/svg/plots.hpp"

namespace mx::report::svg {
namespace {

// Ids appear in url(#...), where other characters would need escaping.
std::string clean(const std::string& id) {
    std::string out;
    for (const char c : id) {
        const bool usable = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        out += usable ? c : '-';
    }
    return out.empty() ? "figure" : out;
}

}  // namespace

std::optional<double> cell_at(const std::vector<std::vector<std::optional<double>>>& cells,
                              std::size_t row, std::size_t column) {
    if (row >= cells.size() || column >= cells[row].size()) return {};
    const std::optional<double> v = cells[row][column];
    return v && std::isfinite(*v) ? v : std::nullopt;
}

drawing nothing_to_show() {
    drawing d;
    d.height = 120;
    d.description = "Nothing to show.";
    d.out.path(box(0.5, 0.5, half_width - 1, d.height - 1), "grid");
    d.out.label(half_width / 2, d.height / 2 + 5, "none mid", "nothing to show");
    return d;
}

std::string element_of(const figure& f) {
    const std::string id = clean(f.id);
    drawing d = std::visit([&](const auto& what) { return draw(what, id); }, f.what);
    canvas out;
    out.start("svg").with("class", d.width > half_width ? "plot wide" : "plot");
    out.with("role", "img");
    out.with("viewBox", "0 0 " + coordinate(d.width) + " " + coordinate(d.height));
    out.with("aria-labelledby", id + "--title " + id + "--desc").open();
    out.start("title").with("id", id + "--title").text(f.title);
    const std::string about = f.caption.empty() ? d.description : f.caption + " " + d.description;
    out.start("desc").with("id", id + "--desc").text(about);
    return out.take() + d.out.take() + "</svg>\n";
}

std::string legend_of(const figure& f) {
    const std::string id = clean(f.id);
    drawing d = std::visit([&](const auto& what) { return draw(what, id); }, f.what);
    if (d.legend.empty()) return {};
    canvas out;
    out.start("ul").with("class", "legend").open();
    for (legend_item& item : d.legend) {
        out.start("li").open();
        out.start("svg").with("class", "plot sample").with("aria-hidden", "true");
        out.with("viewBox", "0 0 " + coordinate(sample_width) + " " + coordinate(legend_row));
        out.open();
        out.markup(item.sample.take());
        out.close("svg");
        out.start("span").text(item.name);
        out.close("li");
    }
    out.close("ul");
    return out.take();
}

}  // namespace mx::report::svg
