// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "apps/mx/exit_code.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/io/readers.hpp"
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

std::string paragraph(const std::string& sentences, std::size_t width) {
    std::string lines;
    for (const std::string& line : report::wrapped(sentences, width)) lines += line + "\n";
    return lines;
}

constexpr std::size_t option_indent = 30;

constexpr std::array topics{
    help_topic{help_page::inputs, "inputs", "files, and how their tensors are read",
               [] {
                   return fmt::format(
                       "FILE is {}, or raw binary, at a path or an address (https://, "
                       "hf://ORG/NAME[@REVISION][/FILE], s3://BUCKET/KEY). Several files, "
                       "directories and quoted patterns are one model; '-' is standard input.",
                       io::readable_formats());
               }},
    help_topic{help_page::training, "training", "network, data and optimizer of a training run",
               [] {
                   return std::string(
                       "Defaults are in parentheses; those of mx study follow from its budget.");
               }},
    help_topic{help_page::outputs, "outputs", "forms of results, the verdict, parts of a run",
               [] {
                   return std::string(
                       "The table on standard output is for reading; --json has every figure. "
                       "Several outputs can be written at once.");
               }},
};

std::vector<std::string> topic_commands() {
    std::vector<std::string> all;
    for (const help_topic& t : topics) all.push_back(fmt::format("'mx help {}'", t.name));
    return all;
}

// "-q, --quiet" of "-q, --quiet" and "--json" of "--json FILE".
std::string names_in(const option_line& l) {
    const std::size_t value = l.spelling.find(' ', l.spelling.rfind("--"));
    return l.spelling.substr(0, value);
}

// "analyze, diff", or "all commands but eval" if that is shorter.
std::string names_of_commands(const std::vector<std::string_view>& with) {
    std::vector<std::string_view> without;
    for (const command& c : commands()) {
        if (std::ranges::find(with, c.name) == with.end()) without.push_back(c.name);
    }
    if (without.empty()) return "all commands";
    if (without.size() >= with.size()) return base::joined(with, ", ");
    return fmt::format("all commands but {}", base::joined(without, ", "));
}

}  // namespace

std::span<const help_topic> help_topics() { return topics; }

void set_up(parser& cmd, const command& c) {
    cmd.name(std::string(c.name));
    cmd.group("Run", help_page::outputs);
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

std::vector<option_line> help_lines(const parser& cmd) {
    const std::vector<option_line> all = option_lines(cmd);
    std::vector<option_line> lines;
    std::ranges::copy_if(all, std::back_inserter(lines),
                         [](const option_line& l) { return l.page == help_page::command; });
    for (const help_topic& t : topics) {
        std::string names;
        for (const option_line& l : all) {
            if (l.page == t.page) names += (names.empty() ? "" : ", ") + names_in(l);
        }
        if (names.empty()) continue;
        lines.push_back({.group = "Shared options",
                         .spelling = fmt::format("mx help {}", t.name),
                         .text = std::move(names)});
    }
    return lines;
}

std::vector<topic_section> topic_sections(help_page page) {
    struct shared {
        option_line line;
        std::vector<std::string_view> with;
    };
    std::vector<shared> options;
    for (const command& c : commands()) {
        parser cmd;
        c.declare(cmd);
        set_up(cmd, c);
        for (option_line& l : cmd.options()) {
            if (l.page != page) continue;
            const auto known = std::ranges::find_if(
                options, [&](const shared& s) { return s.line.spelling == l.spelling; });
            if (known != options.end()) {
                known->with.push_back(c.name);
            } else {
                options.push_back({std::move(l), {c.name}});
            }
        }
    }
    std::vector<topic_section> sections;
    for (shared& o : options) {
        const std::string heading = fmt::format("{} ({})", o.line.group, names_of_commands(o.with));
        auto section = std::ranges::find(sections, heading, &topic_section::heading);
        if (section == sections.end()) {  // after the others of its group
            const auto last = std::find_if(
                sections.rbegin(), sections.rend(),
                [&](const topic_section& s) { return s.lines.front().group == o.line.group; });
            section = sections.insert(last == sections.rend() ? sections.end() : last.base(),
                                      {heading, {}});
        }
        section->lines.push_back(std::move(o.line));
    }
    return sections;
}

std::string help_text(const help_topic& topic, std::size_t width) {
    std::string text = fmt::format("mx help {}: {}\n\n", topic.name, topic.summary) +
                       paragraph(topic.description(), width);
    for (const topic_section& s : topic_sections(topic.page)) {
        text += "\n" + paragraph(s.heading + ":", width);
        for (const option_line& l : s.lines) {
            text += entry(l.spelling, l.text, option_indent, width);
        }
    }
    return text;
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
    std::string text = paragraph(
        "mx emulates OCP Microscaling (MX) formats bit for bit and measures what they do to the "
        "tensors of a checkpoint.",
        width);
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
               fmt::format("'mx help COMMAND' describes one command, {} the options that many "
                           "share, and 'man mx' all of them, the exit codes, the environment "
                           "and the file of settings. 'mx explain NAME' describes a recipe, "
                           "a format, a rule or a metric.",
                           base::listed(topic_commands())),
               width);
}

std::string help_text(const parser& cmd, const command& c, std::size_t width) {
    std::string text = fmt::format("mx {}: {}\n\nUsage: {}\n", c.name, c.summary, synopsis(cmd, c));
    if (!cmd.description().empty()) text += "\n" + paragraph(cmd.description(), width);
    std::string group;
    for (const option_line& l : help_lines(cmd)) {
        if (l.group != group) text += fmt::format("\n{}:\n", l.group);
        group = l.group;
        text += entry(l.spelling, l.text, option_indent, width);
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
