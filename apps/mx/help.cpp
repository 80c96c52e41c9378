// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/mx/exit_code.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/report/text.hpp"

namespace mx::app {
namespace {

std::string entry(const std::string& label, const std::string& text, std::size_t indent,
                  std::size_t width) {
    std::string out = "  " + label;
    bool first = true;
    for (const std::string& line : report::wrapped(text, width - indent)) {
        const std::size_t have = first ? report::columns_of(out) : 0;
        if (first && have + 2 > indent) {
            out += "\n" + std::string(indent, ' ');
        } else {
            out += std::string(indent - have, ' ');
        }
        out += line + "\n";
        first = false;
    }
    return out;
}

}  // namespace

void set_up(parser& cmd, const command& c) {
    cmd.name(std::string(c.name));
    cmd.set_help_flag("-h,--help", "print this help");
}

std::vector<option_line> option_lines(const parser& cmd) {
    std::vector<option_line> lines = cmd.options();
    // The help flag is declared last, but belongs in the last group; arguments come first.
    std::stable_partition(lines.begin(), lines.end(),
                          [](const option_line& l) { return l.positional; });
    std::vector<option_line> sorted;
    for (const option_line& l : lines) {
        const bool seen =
            std::ranges::any_of(sorted, [&](const option_line& s) { return s.group == l.group; });
        if (seen) continue;
        std::copy_if(lines.begin(), lines.end(), std::back_inserter(sorted),
                     [&](const option_line& s) { return s.group == l.group; });
    }
    return sorted;
}

std::string synopsis(const parser& cmd, const command& c) {
    std::string text = fmt::format("mx {}", c.name);
    bool optional = false;
    for (const option_line& l : option_lines(cmd)) {
        if (!l.required && !l.positional) {
            optional = true;
            continue;
        }
        std::string spelling = l.spelling;
        const auto comma = spelling.find(", ");
        if (comma != std::string::npos) {  // "-o, --output OUT" is "-o OUT" here
            spelling = spelling.substr(0, comma) + spelling.substr(spelling.rfind(' '));
        }
        text += l.required ? " " + spelling : " [" + spelling + "]";
    }
    return optional ? text + " [options]" : text;
}

std::string overview(std::size_t width) {
    const auto paragraph = [width](const std::string& sentence) {
        std::string lines;
        for (const std::string& line : report::wrapped(sentence, width)) lines += line + "\n";
        return lines;
    };
    std::string text = paragraph(
        "mx emulates OCP Microscaling (MX) formats bit for bit and measures what they do to the "
        "tensors of a checkpoint.");
    text += "\nUsage: mx COMMAND [options]\n\n";
    std::string_view group;
    for (const command& c : commands()) {
        if (c.group.empty()) continue;
        text += entry(fmt::format("{:<10}{}", c.group == group ? "" : c.group, c.name),
                      std::string(c.summary), 24, width);
        group = c.group;
    }
    return text + "\n" +
           paragraph(
               "'mx help COMMAND' describes one command and 'man mx' all of them, the exit codes, "
               "the environment and the file of settings. 'mx explain NAME' describes a recipe, a "
               "format, a rule or a metric.");
}

std::string help_text(const parser& cmd, const command& c, std::size_t width) {
    constexpr std::size_t indent = 30;
    std::string text = fmt::format("mx {}: {}\n\nUsage: {}\n", c.name, c.summary, synopsis(cmd, c));
    if (!cmd.description().empty()) {
        text += "\n";
        for (const std::string& line : report::wrapped(cmd.description(), width)) {
            text += line + "\n";
        }
    }
    std::string group;
    for (const option_line& l : option_lines(cmd)) {
        if (l.group != group) text += fmt::format("\n{}:\n", l.group);
        group = l.group;
        text += entry(l.spelling, l.text, indent, width);
    }
    const std::string examples = cmd.examples();
    if (!examples.empty()) text += "\nExamples:\n";
    for (std::size_t at = 0; at < examples.size();) {
        const std::size_t end = examples.find('\n', at);
        text += "  " + examples.substr(at, end - at) + "\n";
        at = end == std::string::npos ? end : end + 1;
    }
    return text;
}

std::size_t terminal_help_width() {
    return std::min(help_width, static_cast<std::size_t>(table_width()));
}

std::string help_text(const command& c, std::size_t width) {
    parser cmd;
    c.declare(cmd);
    set_up(cmd, c);
    return help_text(cmd, c, width);
}

}  // namespace mx::app
