// SPDX-License-Identifier: Apache-2.0
// Figures in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/joined.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {

/// "1.5 %": a share in percent, with the limits of report::percent_text.
std::string percent(double share);
/// "312 bytes", "1.53 kB", "90.9 MB": three significant digits, powers of 1000.
std::string bytes_text(std::uint64_t bytes);
/// The unit that bytes_text would use for `bytes`, for a column of a table.
struct byte_unit {
    std::string_view name;
    double bytes;
};
byte_unit unit_of(std::uint64_t bytes);
/// "2.71 times smaller", "1.50 times larger", "the same size": `now` relative to `before`.
std::string size_change(std::uint64_t before, std::uint64_t now);
using base::listed;
using report::finite_or_null;

}  // namespace mx::pages
