// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/lettering.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/report/svg/scale.hpp"
#include "libmx/report/text.hpp"

namespace mx::report::svg {
namespace {

// Widths in ems. A code point counts at its first byte; code points beyond the general punctuation
// and mathematical signs are as wide as ideographs.
double advance(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xe3) return 1;
    if (byte >= 0xc0) return 0.62;
    if (byte >= 0x80) return 0;
    if (std::string_view("ijl.,:;'|!()[]`").find(c) != std::string_view::npos) return 0.36;
    if (std::string_view(" ftr/\\-\"").find(c) != std::string_view::npos) return 0.42;
    if (std::string_view("mwMW@%").find(c) != std::string_view::npos) return 0.92;
    if (c >= 'A' && c <= 'Z') return 0.7;
    return 0.62;
}

constexpr double highest_row = 22;
constexpr double lowest_row = 5;
constexpr double page_height = 900;  // shared by the rows until they reach the lowest height
constexpr double name_gap = 8;

// Positions of a label in order of preference; y grows downwards.
constexpr std::array<std::pair<int, int>, 8> directions{
    {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {-1, -1}, {1, 1}, {-1, 1}}};
constexpr std::array distances{3.0, 10.0, 20.0, 34.0, 50.0};

// The rectangle next to the square with half side `reach` around (x, y).
area beside(double x, double y, double reach, std::pair<int, int> direction, double width,
            double height) {
    const double dx = direction.first;
    const double dy = direction.second;
    const double middle_x = x + dx * (reach + width / 2);
    const double middle_y = y + dy * (reach + height / 2);
    return {middle_x - width / 2, middle_y - height / 2, middle_x + width / 2,
            middle_y + height / 2};
}

bool breaks_behind(char c) { return std::string_view(" :/,_+-").find(c) != std::string_view::npos; }

}  // namespace

double width_of(std::string_view text, double size) {
    double ems = 0;
    for (const char c : text) ems += advance(c);
    return ems * size;
}

double widest(const std::vector<std::string>& texts, double size) {
    double most = 0;
    for (const std::string& text : texts) most = std::max(most, width_of(text, size));
    return most;
}

std::string fitted(const std::string& text, double width, double size) {
    if (width_of(text, size) <= width) return text;
    // No character is narrower than a third of an em; names from files may be megabytes long.
    const auto most = static_cast<std::size_t>(3 * std::max(width, size) / size);
    std::size_t columns = std::min(columns_of(text), most);
    std::string out = shortened(text, columns);
    while (columns > 5 && width_of(out, size) > width) out = shortened(text, --columns);
    return out;
}

std::vector<std::string> broken(const std::string& text, double width, double size) {
    std::vector<std::string> lines;
    std::string line;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && !breaks_behind(text[end])) ++end;
        if (end < text.size()) ++end;
        const std::string piece = text.substr(at, end - at);
        if (!line.empty() && width_of(line + piece, size) > width) {
            lines.push_back(line);
            line.clear();
        }
        line += piece;
        at = end;
    }
    if (!line.empty() || lines.empty()) lines.push_back(line);
    return lines;
}

row_layout rows_of(const std::vector<std::string>& names, double top, double most_width) {
    row_layout rows;
    rows.top = top;
    const auto count = static_cast<double>(std::max<std::size_t>(1, names.size()));
    rows.height = std::clamp(std::floor(page_height / count), lowest_row, highest_row);
    rows.stride = static_cast<std::size_t>(round_above(font_size / rows.height));
    rows.names_width = std::min(widest(names) + name_gap, most_width);
    return rows;
}

void draw_row_names(canvas& out, const row_layout& rows, const std::vector<std::string>& names,
                    double right) {
    for (std::size_t i = 0; i < names.size(); i += rows.stride) {
        const std::string name = fitted(names[i], rows.names_width - name_gap);
        out.label(right - name_gap, rows.middle(i) + 4, "end", name);
    }
}

name_places::name_places(area bounds, std::vector<std::pair<double, double>> points, double radius)
    : bounds_(bounds), points_(std::move(points)), radius_(radius) {
    std::ranges::sort(points_);
}

std::size_t name_places::covered(const area& a) const {
    const std::pair<double, double> first(a.left - radius_, -1e9);
    std::size_t count = 0;
    for (auto at = std::ranges::lower_bound(points_, first);
         at != points_.end() && at->first < a.right + radius_; ++at) {
        if (at->second > a.top - radius_ && at->second < a.bottom + radius_) ++count;
    }
    return count;
}

std::optional<area> name_places::place(double x, double y, double width, double height) {
    std::optional<area> best;
    std::size_t least = ~std::size_t{0};
    for (const double distance : distances) {
        for (const auto& direction : directions) {
            const area a = beside(x, y, radius_ + distance, direction, width, height);
            const bool inside = a.left >= bounds_.left && a.right <= bounds_.right &&
                                a.top >= bounds_.top && a.bottom <= bounds_.bottom;
            const auto touches = [&](const area& other) { return a.touches(other); };
            if (!inside || std::ranges::any_of(taken_, touches)) continue;
            const std::size_t covers = covered(a);
            if (covers < least) {
                least = covers;
                best = a;
            }
        }
        if (least == 0) break;
    }
    if (best) taken_.push_back(*best);
    return best;
}

}  // namespace mx::report::svg
