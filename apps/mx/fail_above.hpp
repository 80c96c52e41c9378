// SPDX-License-Identifier: Apache-2.0
// --fail-above of measuring commands: finds the result that exceeds a limit most.
#pragma once

#include <optional>
#include <string>

#include "libmx/report/record.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::app {

/// FIGURE=LIMIT.
struct fail_limit {
    std::string text;    ///< as it was given
    std::string figure;  ///< a member of the results
    double limit = 0;
};

/// Parses FIGURE=LIMIT; LIMIT is a number that may end with %. Throws base::error (usage).
fail_limit parse_fail_limit(const std::string& text);

struct limit_check {
    bool any = false;  ///< some result has the figure; undefined ones do not count
    double value = 0;  ///< of the worst
    std::optional<report::record> worst;  ///< the farthest above the limit, the first of equals
};

/// Throws base::error (usage) with the nearest name for a figure that no result has.
limit_check check_limit(const report::record_list& results, const fail_limit& limit);

}  // namespace mx::app
