// SPDX-License-Identifier: Apache-2.0
// A policy: the rules by which recipes are recommended. `training.json` and `inference.json` in
// this folder are the named ones; the docs describe how to write another.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/policy/figures.hpp"
#include "libmx/policy/targets.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/report/json_reader.hpp"

namespace mx::policy {

/// The standing of a recipe for a class of tensors, from best to worst.
enum class verdict : std::uint8_t {
    safe,      ///< its error is that of the format on normal data, and published runs support it
    evaluate,  ///< only a task can say
    no,
};

/// "safe", "needs evaluation", "no".
std::string_view to_string(verdict v);

/// Kinds of rules.
enum class rule_kind : std::uint8_t {
    role,       ///< tensors with matching names have a role of their own: `role`, `globs`
    keep,       ///< tensors of `role` keep their stored precision; `recipe`: what it would save
    candidate,  ///< `recipe` may be recommended for `role`, at best as `at_best`
    veto,       ///< a tensor whose `figure` reaches a limit: `evaluate`, `no`
    setting,    ///< `setting` has the value `value`
};

/// Members that do not apply to a rule's kind are empty.
struct rule {
    rule_kind is = rule_kind::setting;
    std::string role;   ///< empty: every role
    std::string globs;  ///< as for --tensor, separated by spaces
    std::optional<codec::recipe> recipe;
    std::string recipe_text;  ///< canonical
    verdict at_best = verdict::no;
    bool native_only = false;  ///< only where the target has instructions for the format
    const figure* measured = nullptr;
    std::optional<double> evaluate, no;  ///< from these values of the figure on
    std::string setting;
    double value = 0;
    std::string why, source;
};

/// The settings that every policy has.
struct setting_row {
    std::string_view name;
    std::string_view meaning;
    std::optional<double> otherwise = {};  ///< where a policy does not set it; none: it must
};
std::span<const setting_row> settings();

struct policy {
    std::string name;
    std::string version;
    std::string purpose;
    std::string extends;  ///< the policy that it extends, or empty
    std::vector<rule> rules;

    double setting(std::string_view key) const;
    /// The role that the policy assigns to a tensor of role `role` named `tensor`.
    std::string_view role_of(std::string_view role, std::string_view tensor) const;
    /// The rule by which a role keeps its precision, or nullptr.
    const rule* kept(std::string_view role) const;
    /// The candidates of a role, in their order; those that are always no are among them.
    std::vector<const rule*> candidates(std::string_view role) const;
    /// The vetoes for tensors of a role: its own replace those for every role.
    std::vector<const rule*> vetoes(std::string_view role) const;
};

/// Names that find_policy accepts.
std::vector<std::string_view> policy_names();

/// The policy of that name. Throws base::error (usage), naming the nearest.
policy find_policy(std::string_view name);

/// Reads a policy in the form that document_of writes: a head with "schema", "name", "version",
/// "purpose" and, to extend a named policy, "extends"; then the rules as "results". A rule replaces
/// the one about the same thing; the candidates of a role replace all its candidates and its
/// keeping rule, and vice versa. Throws base::error (input) with `path`.
policy parse_policy(const report::results_file& file, const std::string& path);
policy parse_policy(std::string_view text, const std::string& path);

/// The policy as printed by `mx explain policy`: a table per kind of rule, each with its source,
/// and as JSON for parse_policy. With a specific target, candidates have a member "on_target":
/// whether it has their format, and in which recipe.
report::document document_of(const policy& p, const target& on = targets.front());
/// The schema mx.policy/1.
report::document_schema policy_schema();

}  // namespace mx::policy
