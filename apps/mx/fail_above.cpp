// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/fail_above.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/mx/options.hpp"
#include "libmx/analysis/rule.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {

fail_limit parse_fail_limit(const std::string& text) {
    const std::size_t at = text.find('=');
    if (at != std::string::npos) {
        try {
            // Numbers have the syntax of mx gate rules.
            const analysis::gate_rule rule =
                analysis::parse_gate_rule(text.substr(0, at) + "<=" + text.substr(at + 1));
            return {text, rule.metric, rule.limit};
        } catch (const base::error&) {  // of another form than is asked for here
        }
    }
    refuse("--fail-above {}: give FIGURE=LIMIT, as in nrmse=0.01", text);
}

limit_check check_limit(const report::record_list& results, const fail_limit& limit) {
    limit_check check;
    bool known = results.empty();
    for (const report::record& r : results) {
        known = known || report::find(r, limit.figure) != nullptr;
        const std::optional<double> value = report::number_of(r, limit.figure);
        if (!value) continue;
        check.any = true;
        if (*value <= limit.limit || (check.worst && *value <= check.value)) continue;
        check.worst = r;
        check.value = *value;
    }
    if (known) return check;
    std::set<std::string> names;
    for (const auto& [name, value] : results.front()) {
        if (report::number_of(value) || std::holds_alternative<std::monostate>(value)) {
            names.insert(name);
        }
    }
    refuse("--fail-above: " + base::unknown("figure", limit.figure, {names.begin(), names.end()}));
}

}  // namespace mx::app
