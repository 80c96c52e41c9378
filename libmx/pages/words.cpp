// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/report/cells.hpp"

namespace mx::pages {

std::string decibels(double db) {
    return std::isinf(db) && db > 0 ? std::string("no error") : fmt::format("{:.2f} dB", db);
}

std::string percent(double share) { return report::percent_text(share) + " %"; }

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 1000) return report::plural(bytes, "byte");
    constexpr std::array units{"kB", "MB", "GB", "TB", "PB", "EB"};
    double x = static_cast<double>(bytes) / 1000;
    std::size_t unit = 0;
    while (x >= 999.5 && unit + 1 < units.size()) {
        x /= 1000;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0, units[unit]);
}

std::string size_change(std::uint64_t before, std::uint64_t now) {
    const bool grows = now > before;
    const auto [small, large] = std::minmax(before, now);
    const double ratio = small == 0 ? 1 : static_cast<double>(large) / static_cast<double>(small);
    if (ratio < 1.005) return "the same size";
    return fmt::format("{:.2f} times {}", ratio, grows ? "larger" : "smaller");
}

std::string listed(const std::vector<std::string>& all) {
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) text += i + 1 == all.size() ? " and " : ", ";
        text += all[i];
    }
    return text;
}

report::value finite_or_null(double x) {
    return std::isfinite(x) ? report::value(x) : report::value();
}

}  // namespace mx::pages
