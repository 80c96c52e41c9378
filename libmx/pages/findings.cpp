// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "libmx/pages/sections.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t shown_findings = 10;

}  // namespace

std::vector<report::section> finding_sections(const evidence& e) {
    using report::cell;
    if (!e.examined) return {};
    report::section s;
    s.heading = "Blocks that lose what told their elements apart";
    if (e.findings.empty()) {
        s.notes.push_back("mx cluster found no tensor in danger.");
        return {std::move(s)};
    }
    s.columns = {{"tensor", "tensor", cell::name},
                 {"recipe", "recipe"},
                 {"verdict", "what happens"},
                 {"ailing_block_rate", "blocks\n%", cell::share},
                 {"nrmse", "R-MSE\n/ RMS", cell::significant, 4},
                 {"mend", "what mends it"}};
    const std::size_t shown = std::min(shown_findings, e.findings.size());
    for (std::size_t i = 0; i < shown; ++i) s.rows.push_back(*e.findings[i]);
    s.notes.push_back(fmt::format(
        "Found by mx cluster, most severe first{}. What mends it was measured on the tensor.",
        shown < e.findings.size() ? fmt::format("; {} of {}", shown, e.findings.size()) : ""));
    return {std::move(s)};
}

}  // namespace mx::pages
