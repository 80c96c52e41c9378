// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/svg.hpp"

#include <cmath>
#include <variant>

#include "libmx/report/svg/plots.hpp"

namespace mx::report::svg {
namespace {

// Ids are used in url(#...), where anything else would need quoting of its own.
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
    d.out.path(box(0.5, 0.5, page_width - 1, d.height - 1), "grid");
    d.out.label(page_width / 2, d.height / 2 + 5, "none mid", "nothing to show");
    return d;
}

std::string element_of(const figure& f) {
    const std::string id = clean(f.id);
    drawing d = std::visit([&](const auto& what) { return draw(what, id); }, f.what);
    canvas out;
    out.start("svg").with("class", "plot").with("role", "img");
    out.with("viewBox", "0 0 " + coordinate(page_width) + " " + coordinate(d.height));
    out.with("aria-labelledby", id + "--title " + id + "--desc").open();
    out.start("title").with("id", id + "--title").text(f.title);
    const std::string about = f.caption.empty() ? d.description : f.caption + " " + d.description;
    out.start("desc").with("id", id + "--desc").text(about);
    std::string text = out.take() + d.out.take();
    return text + "</svg>\n";
}

}  // namespace mx::report::svg
