// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/report/cells.hpp"

namespace mx::pages {

std::string percent(double share) { return report::percent_text(share) + " %"; }

byte_unit unit_of(std::uint64_t bytes) {
    constexpr std::array names{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    byte_unit unit{names.front(), 1};
    for (std::size_t i = 1; i < names.size(); ++i) {
        // A value that would round to 1000 of a unit is 1.00 of the next.
        if (static_cast<double>(bytes) / unit.bytes < (i == 1 ? 1000 : 999.5)) break;
        unit = {names[i], unit.bytes * 1000};
    }
    return unit;
}

std::string bytes_text(std::uint64_t bytes) {
    const byte_unit unit = unit_of(bytes);
    if (unit.bytes == 1) return report::plural(bytes, "byte");
    const double x = static_cast<double>(bytes) / unit.bytes;
    return fmt::format("{:.{}f} {}", x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0, unit.name);
}

std::string size_change(std::uint64_t before, std::uint64_t now) {
    const bool grows = now > before;
    const auto [small, large] = std::minmax(before, now);
    const double ratio = small == 0 ? 1 : static_cast<double>(large) / static_cast<double>(small);
    if (ratio < 1.005) return "the same size";
    return fmt::format("{:.2f} times {}", ratio, grows ? "larger" : "smaller");
}

}  // namespace mx::pages
