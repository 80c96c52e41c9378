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

std::string listed(const std::vector<std::string>& all) {
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) text += i + 1 == all.size() ? " and " : ", ";
        text += all[i];
    }
    return text;
}

}  // namespace mx::pages
