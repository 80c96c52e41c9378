// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "libmx/report/cells.hpp"

namespace mx::pages {

std::string decibels(double db) {
    return std::isinf(db) && db > 0 ? std::string("no error") : fmt::format("{:.2f} dB", db);
}

std::string met_floor(double db) { return fmt::format("{:.2f}", std::floor(db * 100) / 100); }

std::string percent(double share) { return report::percent_text(share) + " %"; }

std::string bytes_text(std::uint64_t bytes) {
    const auto n = static_cast<double>(bytes);
    if (n < 1e3) return fmt::format("{} bytes", bytes);
    if (n < 999.5e3) return fmt::format("{:.3g} kB", n / 1e3);
    if (n < 999.5e6) return fmt::format("{:.3g} MB", n / 1e6);
    return fmt::format("{:.4g} GB", n / 1e9);
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
