// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/markers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace mx::report::svg {
namespace {

constexpr std::size_t looks = 10;  // of series
constexpr std::size_t fills = 8;   // of parts

using vertices = std::vector<std::pair<double, double>>;

path_data polygon(const vertices& shape, double x, double y, double radius) {
    path_data d;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const double px = x + radius * shape[i].first;
        const double py = y + radius * shape[i].second;
        i == 0 ? d.move(px, py) : d.line(px, py);
    }
    return d.close();
}

// `quarter`, and the same rotated by 90, 180 and 270 degrees.
vertices turned(vertices quarter) {
    const std::size_t count = quarter.size();
    while (quarter.size() < 4 * count) {
        const auto [x, y] = quarter[quarter.size() - count];
        quarter.emplace_back(-y, x);
    }
    return quarter;
}

// All shapes have about the same area; y grows downwards. The first is the circle.
const vertices& shape_of(std::size_t kind) {
    static const std::array<vertices, looks> shapes{{
        {},
        turned({{-.9, -.9}}),
        {{0, -1.2}, {1.15, .8}, {-1.15, .8}},
        turned({{0, -1.3}}),
        {{0, 1.2}, {1.15, -.8}, {-1.15, -.8}},
        turned({{-.4, -1.2}, {.4, -1.2}, {.4, -.4}}),
        turned({{-1.1, -.6}, {-.6, -1.1}, {0, -.5}}),
        {{-1.1, -1.1}, {1.1, -1.1}, {.25, 0}, {1.1, 1.1}, {-1.1, 1.1}, {-.25, 0}},
        turned({{0, -1.3}, {.4, -.4}}),
        {{-1.3, -.5}, {1.3, -.5}, {1.3, .5}, {-1.3, .5}},
    }};
    return shapes[kind % looks];
}

// Lines in a tile of 8 x 8; empty for a plain fill.
constexpr std::array<std::string_view, fills> hatchings{
    "",
    "M0 8L8 0M-2 2L2 -2M6 10L10 6",
    "M0 2H8M0 6H8",
    "M0 0L8 8M6 -2L10 2M-2 6L2 10",
    "",
    "M2 0V8M6 0V8",
    "M0 8L8 0M0 0L8 8",
    "M1 2H3M5 6H7",
};

bool is_dark(std::size_t part) { return part % fills < 3; }

}  // namespace

std::string series_class(std::size_t index) { return fmt::format("s{}", index % looks + 1); }

path_data marker(std::size_t index, double x, double y, double radius) {
    const vertices& shape = shape_of(index + index / looks);
    if (!shape.empty()) return polygon(shape, x, y, radius);
    return path_data().round(x, y, radius);
}

path_data arrow(double x, double y, int right, int up) {
    const auto along = static_cast<double>(right);
    const auto above = static_cast<double>(-up);
    if (up != 0) return polygon({{0, above}, {.8, -.6 * above}, {-.8, -.6 * above}}, x, y, 5);
    return polygon({{along, 0}, {-.6 * along, .8}, {-.6 * along, -.8}}, x, y, 5);
}

void define_undefined(canvas& out, const std::string& id) {
    out.start("defs").open();
    out.start("pattern").with("id", id + "--u").with("width", 6).with("height", 6);
    out.with("patternUnits", "userSpaceOnUse").open();
    out.path(box(0, 0, 6, 6), "blank");
    out.start("path").with("class", "undefined").with("d", "M0 6L6 0M-1 1L1 -1M5 7L7 5").done();
    out.close("pattern");
    out.close("defs");
}

std::string undefined_fill(const std::string& id) { return "url(#" + id + "--u)"; }

void define_parts(canvas& out, const std::string& id, std::size_t count) {
    out.start("defs").open();
    for (std::size_t i = 0; i < std::min(count, fills); ++i) {
        out.start("pattern").with("id", fmt::format("{}--p{}", id, i));
        out.with("width", 8).with("height", 8).with("patternUnits", "userSpaceOnUse").open();
        out.path(box(0, 0, 8, 8), fmt::format("f{}", i + 1));
        if (!hatchings[i].empty()) {
            out.start("path").with("class", is_dark(i) ? "on-dark" : "on-light");
            out.with("d", hatchings[i]).done();
        }
        out.close("pattern");
    }
    out.close("defs");
}

std::string part_fill(const std::string& id, std::size_t part) {
    return fmt::format("url(#{}--p{})", id, part % fills);
}

std::string_view part_ink(std::size_t part) { return is_dark(part) ? "bright" : "dark"; }

}  // namespace mx::report::svg
