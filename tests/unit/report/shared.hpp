// SPDX-License-Identifier: Apache-2.0
// What tests of figures and pages share.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace mx::report {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double inf = std::numeric_limits<double>::infinity();

/// How often a text contains another.
inline std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

}  // namespace mx::report
