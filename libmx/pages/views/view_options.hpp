// SPDX-License-Identifier: Apache-2.0
// How much of a document its view shows.
#pragma once

#include <cstddef>

namespace mx::pages {

struct view_options {
    std::size_t top = 10;  ///< rows of a list of the worst
    bool all = false;      ///< every row
    bool page = false;     ///< figures, and as many rows as a page holds
};

/// The rows of a list on a page.
inline constexpr std::size_t most_page_rows = 100;

/// The rows that a list of the worst shows.
inline std::size_t rows_shown(const view_options& o) {
    return o.all ? static_cast<std::size_t>(-1) : o.page ? most_page_rows : o.top;
}

}  // namespace mx::pages
