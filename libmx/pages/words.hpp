// SPDX-License-Identifier: Apache-2.0
// How figures are said in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/members.hpp"

namespace mx::pages {

/// "1.5 %": a share in percent, with report::percent_text's ends.
std::string percent(double share);
/// "312 bytes", "1.53 kB", "90.9 MB": three digits, units of 1000.
std::string bytes_text(std::uint64_t bytes);
/// The unit in which bytes_text would say `bytes`, for a column of a table.
struct byte_unit {
    std::string_view name;
    double bytes;
};
byte_unit unit_of(std::uint64_t bytes);
/// "2.71 times smaller", "1.50 times larger", "the same size": `now` against `before`.
std::string size_change(std::uint64_t before, std::uint64_t now);
/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& all);

using report::finite_or_null;

}  // namespace mx::pages
