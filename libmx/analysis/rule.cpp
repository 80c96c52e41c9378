// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/report/members.hpp"

namespace mx::analysis {
namespace {

constexpr std::size_t file_limit = std::size_t{1} << 20;
constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view totals_class = "summary";
constexpr std::string_view policy_metric = "policy";

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

[[noreturn]] void refuse(std::string_view rule, const std::string& why) {
    throw base::error(base::error_kind::usage,
                      fmt::format("rule '{}': {}; give [CLASS:]METRIC OP NUMBER, as in "
                                  "'clamp_rate<0.001'",
                                  base::printable(std::string(rule)), why));
}

// Removes " or null" at the end.
bool take_or_null(std::string_view& text) {
    for (const std::string_view word : {"null", "or"}) {
        if (text.size() <= word.size() || text.substr(text.size() - word.size()) != word ||
            blanks.find(text[text.size() - word.size() - 1]) == std::string_view::npos) {
            return false;
        }
        text = trimmed(text.substr(0, text.size() - word.size()));
    }
    return true;
}

std::optional<double> parsed(const std::string& text) {
    double x = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, x);
    if (read.ec != std::errc{} || read.ptr != end || !std::isfinite(x)) return {};
    return x;
}

std::optional<double> number_in(std::string_view text) {
    if (text == "true") return 1;
    if (text == "false") return 0;
    if (text.empty() || text.back() != '%') return parsed(std::string(text));
    const std::string share(trimmed(text.substr(0, text.size() - 1)));
    // The nearest double to the share, not to a hundred times it.
    if (share.find_first_of("eE") == std::string::npos) return parsed(share + "e-2");
    const std::optional<double> percent = parsed(share);
    return percent ? std::optional(*percent / 100) : std::nullopt;
}

bool is_metric(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.';
    });
}

bool is_role(std::string_view name) {
    const auto all = engine::roles();
    return std::ranges::any_of(all, [&](const engine::role_row& r) { return r.name == name; });
}

const report::value* member(const report::record& r, std::string_view path) {
    const report::value* v = report::find(r, first_member(path));
    const std::size_t dot = path.find('.');
    if (v == nullptr || dot == std::string_view::npos) return v;
    const auto* inner = std::get_if<report::record>(v);
    if (inner != nullptr) return member(*inner, path.substr(dot + 1));
    // Every member of an object that is null is null.
    return std::holds_alternative<std::monostate>(*v) ? v : nullptr;
}

// Takes CLASS off "CLASS:METRIC" and returns the metric.
std::string_view take_subject(std::string_view whole, std::string_view figure, gate_rule& rule) {
    const std::size_t colon = figure.rfind(':');
    if (colon == std::string_view::npos) {
        rule.subject = rule_subject::everything;
        rule.subject_text.clear();
        return figure;
    }
    rule.subject_text = trimmed(figure.substr(0, colon));
    if (rule.subject_text.empty()) refuse(whole, "has nothing before the colon");
    rule.subject = rule.subject_text == totals_class ? rule_subject::totals
                   : is_role(rule.subject_text)      ? rule_subject::role
                                                     : rule_subject::names;
    return trimmed(figure.substr(colon + 1));
}

}  // namespace

std::string_view first_member(std::string_view metric) {
    return metric.substr(0, metric.find('.'));
}

gate_rule parse_gate_rule(std::string_view text) {
    const std::string_view whole = trimmed(text);
    gate_rule rule;
    rule.text = whole;
    std::string_view rest = whole;
    rule.or_null = take_or_null(rest);

    const std::size_t last = rest.find_last_of("<>=!");
    if (take_subject(whole, rest, rule) == policy_metric && !rule.or_null &&
        rule.subject != rule_subject::totals) {
        rule.metric = policy_metric;
        return rule;
    }
    if (last == std::string_view::npos) refuse(whole, "has no comparison (< <= > >= == !=)");
    std::size_t begin = last;
    const std::size_t before = last == 0 ? last : last - 1;
    for (const comparison& c : comparisons) {
        const bool two = c.symbol.size() == 2;
        const std::size_t at = two ? before : last;
        if (rule.compare == nullptr && rest.substr(at, c.symbol.size()) == c.symbol) {
            rule.compare = &c;
            begin = at;
        }
    }
    if (rule.compare == nullptr) {
        refuse(whole, fmt::format("'{}' is not a comparison (< <= > >= == !=)", rest[last]));
    }
    const std::string_view number = trimmed(rest.substr(last + 1));
    const std::optional<double> limit = number_in(number);
    if (!limit) refuse(whole, fmt::format("'{}' is not a number", number));
    rule.limit = *limit;

    const std::string_view figure = take_subject(whole, trimmed(rest.substr(0, begin)), rule);
    if (!is_metric(figure)) refuse(whole, fmt::format("'{}' is not the name of a metric", figure));
    rule.metric = figure;
    return rule;
}

std::vector<gate_rule> read_gate_rules(const std::string& path) {
    io::input_stream file(path);
    std::string text(file_limit + 1, '\0');
    text.resize(file.read(text));
    if (text.size() > file_limit) {
        throw base::error(base::error_kind::input,
                          "is larger than 1 MiB, which is not a list of "
                          "rules",
                          {path, {}, {}});
    }
    std::vector<gate_rule> rules;
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = std::string_view(text).substr(at, end - at);
        at = end + 1;
        ++number;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '#' && (i == 0 || blanks.find(line[i - 1]) != std::string_view::npos)) {
                line = line.substr(0, i);
            }
        }
        if (trimmed(line).empty()) continue;
        try {
            rules.push_back(parse_gate_rule(line));
            rules.back().file = path;
            rules.back().line = number;
        } catch (const base::error& e) {
            throw base::error(e.kind(), fmt::format("line {}: {}", number, e.message()),
                              {path, {}, {}});
        }
    }
    if (rules.empty()) {
        throw base::error(base::error_kind::input, "holds no rule", {path, {}, {}});
    }
    return rules;
}

bool concerns(const gate_rule& rule, const report::record& r) {
    switch (rule.subject) {
        case rule_subject::everything:
            return true;
        case rule_subject::role:
            return report::text_of(r, "role") == rule.subject_text;
        case rule_subject::names:
            return base::glob_match(rule.subject_text, report::text_of(r, "tensor"));
        case rule_subject::totals:
            break;
    }
    return false;
}

finding judge(const gate_rule& rule, const report::record& r) {
    using outcome = finding::outcome;
    if (rule.compare == nullptr) return {outcome::absent};
    const report::value* v = member(r, rule.metric);
    if (v == nullptr) return {outcome::absent};
    if (std::holds_alternative<std::monostate>(*v)) {
        return {rule.or_null ? outcome::holds : outcome::undefined};
    }
    std::optional<double> figure = report::number_of(*v);
    if (const bool* b = std::get_if<bool>(v)) figure = *b ? 1 : 0;
    if (!figure) return {outcome::no_number};
    return {rule.compare->holds(*figure, rule.limit) ? outcome::holds : outcome::broken, figure};
}

}  // namespace mx::analysis
