// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/report/figure.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report::html {

/// Rows a page shows at a time; page.js reads the number from the page.
inline constexpr std::size_t explorer_rows = 100;

/// The worst rows of `e` by its first metric as a table, and all its values for the script.
/// `id` is unique in the page.
void write_explorer(const explorer& e, const std::string& id, const sink& out);

}  // namespace mx::report::html
