// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gate_ci.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/pages/views/gate_view.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/markup.hpp"

namespace mx::pages {
namespace {

using rule_list = std::vector<analysis::gate_rule>;

void replace(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

// XML 1.0 does not allow U+FFFE and U+FFFF.
std::string xml(std::string text) {
    text = base::printable(text);
    replace(text, "\xef\xbf\xbe", "\xef\xbf\xbd");
    replace(text, "\xef\xbf\xbf", "\xef\xbf\xbd");
    return report::escaped(text);
}

// In workflow commands, % starts an escape; properties end at a comma or a colon.
std::string message_of(std::string text) {
    replace(text, "%", "%25");
    replace(text, "\r", "%0D");
    replace(text, "\n", "%0A");
    return text;
}
std::string property_of(std::string text) {
    text = message_of(std::move(text));
    replace(text, ":", "%3A");
    replace(text, ",", "%2C");
    return text;
}

// The worst violations of a rule, one per line.
std::vector<std::string> breaches_of(const gate::gate_verdict& verdict, std::size_t rule,
                                     std::size_t top) {
    std::vector<std::string> lines;
    for (const gate::breach& b : verdict.breaches) {
        if (b.rule != rule || lines.size() == top) continue;
        const std::string name = b.tensor.empty() ? "all tensors together" : b.tensor;
        const std::string under = b.recipe.empty() ? "" : fmt::format(" under {}", b.recipe);
        lines.push_back(base::printable(fmt::format("{}{}: {}", name, under, gate_finding(b))));
    }
    return lines;
}

}  // namespace

std::string gate_junit(const rule_list& rules, const gate::gate_inputs& inputs,
                       const gate::gate_verdict& verdict, std::size_t top) {
    const auto failures = std::count_if(verdict.rules.begin(), verdict.rules.end(),
                                        [](const gate::rule_verdict& v) { return !v.holds(); });
    const std::string counts =
        fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", rules.size(), failures);
    std::vector<std::string> files;
    for (const analysis::results_input& input : inputs.files) files.push_back(input.path);
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out += fmt::format("<testsuites name=\"mx gate\" {}>\n", counts);
    out += fmt::format("<testsuite name=\"{}\" {}>\n",
                       xml(fmt::format("{}", fmt::join(files, " "))), counts);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const gate::rule_verdict& v = verdict.rules[i];
        out += fmt::format("<testcase classname=\"mx gate\" name=\"{}\"", xml(rules[i].text));
        if (!rules[i].file.empty()) {
            out += fmt::format(" file=\"{}\" line=\"{}\"", xml(rules[i].file), rules[i].line);
        }
        if (v.holds()) {
            out += "/>\n";
            continue;
        }
        out += fmt::format(">\n<failure type=\"{}\" message=\"{}\">",
                           v.broken > 0 ? "broken" : "nothing checked", xml(gate_problem(v)));
        for (const std::string& line : breaches_of(verdict, i, top)) out += xml(line) + "\n";
        out += "</failure>\n</testcase>\n";
    }
    return out + "</testsuite>\n</testsuites>\n";
}

std::vector<std::string> gate_annotations(const rule_list& rules, const gate::gate_inputs& inputs,
                                          const gate::gate_verdict& verdict, std::size_t top) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (verdict.rules[i].holds()) continue;
        std::string file = rules[i].file;
        const auto first =
            std::find_if(verdict.breaches.begin(), verdict.breaches.end(),
                         [&](const gate::breach& b) { return b.rule == i && !b.file.empty(); });
        if (file.empty() && first != verdict.breaches.end()) file = first->file;
        if (file.empty()) file = inputs.files.front().path;
        std::string message = base::printable(gate_problem(verdict.rules[i]));
        for (const std::string& line : breaches_of(verdict, i, top)) message += "\n" + line;
        lines.push_back(fmt::format(
            "::error file={}{},title={}::{}", property_of(base::printable(file)),
            rules[i].file.empty() ? "" : fmt::format(",line={}", rules[i].line),
            property_of("mx gate: " + base::printable(rules[i].text)), message_of(message)));
    }
    return lines;
}

}  // namespace mx::pages
