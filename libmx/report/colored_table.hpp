// SPDX-License-Identifier: Apache-2.0
// The human table for a terminal that shows colours.
#pragma once

#include "libmx/report/writers.hpp"

namespace mx::report {

/// write_table with headings bold, and verdicts and risks in colours (ANSI sequences). Without
/// these sequences the text is that of write_table.
void write_colored_table(const document& d, const layout& l, const sink& out);

}  // namespace mx::report
