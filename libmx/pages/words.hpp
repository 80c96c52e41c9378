// SPDX-License-Identifier: Apache-2.0
// How figures are said in sentences.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/members.hpp"

namespace mx::pages {

/// "18.87 dB"; "no error" where it is infinite.
std::string decibels(double db);
/// `db` rounded down to two decimals: a floor that is still met.
std::string met_floor(double db);
/// "1.5 %": a share in percent, with report::percent_text's ends.
std::string percent(double share);
/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& all);

using report::finite_or_null;

}  // namespace mx::pages
