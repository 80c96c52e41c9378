// SPDX-License-Identifier: Apache-2.0
// THE GRAMMAR of gate rules: [CLASS:]METRIC OP NUMBER [or null], as in norm:clamp_rate<0.1%, or
// [CLASS:]policy.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/record.hpp"

namespace mx::analysis {

/// How a figure is compared with a rule's number.
struct comparison {
    std::string_view symbol;
    bool (*holds)(double figure, double limit);
};

/// Longer symbols before those they begin with.
inline constexpr std::array comparisons{
    comparison{"<=", [](double a, double b) { return a <= b; }},
    comparison{">=", [](double a, double b) { return a >= b; }},
    comparison{"==", [](double a, double b) { return a == b; }},
    comparison{"!=", [](double a, double b) { return a != b; }},
    comparison{"<", [](double a, double b) { return a < b; }},
    comparison{">", [](double a, double b) { return a > b; }},
};

/// Which records a rule applies to.
enum class rule_subject : std::uint8_t {
    everything,  ///< every tensor: no CLASS
    role,        ///< tensors of a role: CLASS is one of roles()
    names,       ///< tensors whose name matches: CLASS is anything else
    totals,      ///< all tensors together, per recipe: CLASS is "summary"
};

struct gate_rule {
    std::string text;  ///< as it was given, without blanks around it
    rule_subject subject = rule_subject::everything;
    std::string subject_text;  ///< the role, or the pattern for names
    std::string metric;        ///< a member of the records; "a.b" is the member b of the object a
    const comparison* compare = nullptr;  ///< none: the rule is about the policy
    double limit = 0;
    bool or_null = false;  ///< an undefined figure is accepted
    std::string file;      ///< where it comes from; empty: an option
    std::size_t line = 0;  ///< in the file, from 1 on
};

/// Parses a rule. NUMBER may end with %, or be true (1) or false (0). The operator is the last one
/// in the text, so CLASS may be any name; METRIC is the text between the last colon before it and
/// the operator. Without an operator the metric is "policy", and CLASS is not "summary". Throws
/// base::error (usage).
gate_rule parse_gate_rule(std::string_view text);

/// The rules of a file, a pipe or standard input ("-"), one per line; blank lines and comments,
/// from a '#' at the beginning of a line or after a blank, are ignored. Throws base::error: input
/// if the file cannot be read, has more than 1 MiB or no rule; usage, with file and line, for a
/// line that is not a rule.
std::vector<gate_rule> read_gate_rules(const std::string& path);

/// Whether the rule applies to this record of a tensor under a recipe; never for totals.
bool concerns(const gate_rule& rule, const report::record& r);

/// The figure of a rule in a record; a rule about the policy has none.
struct finding {
    enum class outcome : std::uint8_t {
        holds,
        broken,
        undefined,  ///< the figure is null there, and the rule does not accept that
        absent,     ///< the record has no such member
        no_number,  ///< it is a text, a list or an object
    };
    outcome is = outcome::absent;
    std::optional<double> figure = {};
};
finding judge(const gate_rule& rule, const report::record& r);

/// The member of a record that `metric` begins with: "a" of "a.b".
std::string_view first_member(std::string_view metric);

}  // namespace mx::analysis
