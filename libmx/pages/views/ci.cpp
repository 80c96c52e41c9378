// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/ci.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/report/markup.hpp"

namespace mx::pages {
namespace {

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

}  // namespace

std::string junit(std::string_view tool, const std::string& subject,
                  const std::vector<ci_case>& cases) {
    const auto failures = std::ranges::count(cases, false, &ci_case::holds);
    const std::string counts =
        fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", cases.size(), failures);
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out += fmt::format("<testsuites name=\"{}\" {}>\n", tool, counts);
    out += fmt::format("<testsuite name=\"{}\" {}>\n", xml(subject), counts);
    for (const ci_case& c : cases) {
        out += fmt::format("<testcase classname=\"{}\" name=\"{}\"", tool, xml(c.name));
        if (!c.file.empty()) {
            out += fmt::format(" file=\"{}\" line=\"{}\"", xml(c.file), c.line);
        }
        if (c.holds) {
            out += "/>\n";
            continue;
        }
        out += fmt::format(">\n<failure type=\"{}\" message=\"{}\">", c.type, xml(c.problem));
        for (const std::string& line : c.lines) out += xml(line) + "\n";
        out += "</failure>\n</testcase>\n";
    }
    return out + "</testsuite>\n</testsuites>\n";
}

std::vector<std::string> annotations(std::string_view tool, const std::vector<ci_case>& cases) {
    std::vector<std::string> all;
    for (const ci_case& c : cases) {
        if (c.holds) continue;
        std::string message = base::printable(c.problem);
        for (const std::string& line : c.lines) message += "\n" + base::printable(line);
        all.push_back(fmt::format("::{} file={}{},title={}::{}", c.level,
                                  property_of(base::printable(c.file.empty() ? c.at : c.file)),
                                  c.file.empty() ? "" : fmt::format(",line={}", c.line),
                                  property_of(fmt::format("{}: {}", tool, base::printable(c.name))),
                                  message_of(message)));
    }
    return all;
}

}  // namespace mx::pages
