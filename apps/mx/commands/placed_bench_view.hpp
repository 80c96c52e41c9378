// SPDX-License-Identifier: Apache-2.0
// What `mx bench` shows of cards and files, beside the roofline of memory.
#pragma once

#include "libmx/bench/throughput.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// Adds the members `devices` and `placed` and their tables to `d`; nothing where nothing of the
/// kind was measured.
void add_placed(const bench::throughput_request& request, const bench::throughput& t,
                report::document& d);

/// A share of 1 as a bar of bar_cells characters, and the title of its column.
inline constexpr long bar_cells = 24;
std::string bar_text(double share);
std::string bar_title();

}  // namespace mx::app
