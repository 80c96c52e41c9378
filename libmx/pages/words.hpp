// SPDX-License-Identifier: Apache-2.0
// How figures are said in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/report/record.hpp"

namespace mx::pages {

/// "18.87 dB"; "no error" where it is infinite.
std::string decibels(double db);
/// "1.5 %": a share in percent, with report::percent_text's ends.
std::string percent(double share);
/// "312 bytes", "1.53 kB", "90.9 MB": three digits, units of 1000.
std::string bytes_text(std::uint64_t bytes);
/// "2.71 times smaller", "1.50 times larger", "the same size": `now` against `before`.
std::string size_change(std::uint64_t before, std::uint64_t now);
/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& all);
/// Null where the number is not finite.
report::value finite_or_null(double x);

}  // namespace mx::pages
