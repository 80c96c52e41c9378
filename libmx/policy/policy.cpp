// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/policy/offers.hpp"
#include "libmx/policy/policies.hpp"
#include "libmx/report/members.hpp"

namespace mx::policy {
namespace {

constexpr std::array setting_rows{
    setting_row{"least_axes", "least number of axes longer than 1 in an operand of a product"},
    setting_row{"whole_blocks", "1: the axis of the blocks must hold whole blocks; 0: it need not"},
    setting_row{"quantized_bits",
                "a tensor stored in fewer bits per element, scales included, is quantized already "
                "and is kept as it is",
                0},
    setting_row{"exact_is_safe",
                "1: a recipe that holds every weight of a class exactly needs no evaluation", 0},
    setting_row{"scale_margin_db",
                "gain in SQNR, in dB, from which on another scale rule is named"},
    setting_row{"exceptions",
                "largest share of a class's elements whose recipe may differ from that of the "
                "class"},
    setting_row{"dominated",
                "share of a tensor's squares in one element above which SQNR and gain are not "
                "judged"},
    setting_row{"dominant",
                "share of a class's error or lost elements in one tensor above which the tensor "
                "is named"},
    setting_row{"task_loss", "largest relative loss in the metrics of a task that is still safe"},
};

struct named_policy {
    std::string_view name;
    asset (*file)();
};
constexpr std::array named{named_policy{"inference", inference_json},
                           named_policy{"training", training_json}};

constexpr std::array kinds{"role", "keep", "candidate", "veto", "setting"};
constexpr std::array verdict_keys{"safe", "evaluate", "no"};

bool any_matches(std::string_view globs, std::string_view name) {
    while (!globs.empty()) {
        const std::size_t end = std::min(globs.find(' '), globs.size());
        if (base::glob_match(globs.substr(0, end), name)) return true;
        globs.remove_prefix(std::min(globs.size(), end + 1));
    }
    return false;
}

// One rule of a file.
class rule_reader {
  public:
    rule_reader(const report::record& r, const std::string& path, std::size_t number)
        : record_(r), path_(path), number_(number) {}

    rule read() {
        rule r;
        r.is = static_cast<rule_kind>(one_of("rule", kinds));
        r.why = text("why");
        r.source = text("source");
        if (r.is == rule_kind::setting) {
            r.setting = text("setting");
            std::vector<std::string_view> names;
            for (const setting_row& s : setting_rows) names.push_back(s.name);
            require_known("setting", r.setting, names);
            r.value = number("value").value_or(0);
            return r;
        }
        r.role = text("role");
        if (r.role.empty() && r.is != rule_kind::veto) fail("has no \"role\"");
        switch (r.is) {
            case rule_kind::role:
                r.globs = text("tensors");
                break;
            case rule_kind::keep:
                set_recipe(r);
                break;
            case rule_kind::candidate:
                set_recipe(r);
                if (!r.recipe) fail("has no \"recipe\"");
                r.at_best = static_cast<verdict>(one_of("verdict", verdict_keys));
                r.native_only = flag("native_only");
                break;
            case rule_kind::veto: {
                const std::string name = text("figure");
                std::vector<std::string_view> names;
                for (const figure& f : figures()) names.push_back(f.name);
                require_known("figure", name, names);
                r.measured = find_figure(name);
                r.evaluate = number("evaluate");
                r.no = number("no");
                break;
            }
            case rule_kind::setting:
                break;
        }
        return r;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw base::error(base::error_kind::input, fmt::format("rule {} {}", number_, what),
                          {path_, {}, {}});
    }
    const report::value* member(std::string_view name) const {
        const report::value* v = report::find(record_, name);
        return v == nullptr || std::holds_alternative<std::monostate>(*v) ? nullptr : v;
    }
    std::string text(std::string_view name) const {
        const report::value* v = member(name);
        if (v == nullptr) return {};
        const auto* s = std::get_if<std::string>(v);
        if (s == nullptr) fail(fmt::format("has a \"{}\" that is not a string", name));
        return *s;
    }
    std::optional<double> number(std::string_view name) const {
        const report::value* v = member(name);
        if (v == nullptr) return {};
        const auto x = report::number_of(*v);
        if (!x) fail(fmt::format("has a \"{}\" that is not a number", name));
        return x;
    }
    bool flag(std::string_view name) const {
        const report::value* v = member(name);
        if (v == nullptr) return false;
        const auto* b = std::get_if<bool>(v);
        if (b == nullptr) fail(fmt::format("has a \"{}\" that is neither true nor false", name));
        return *b;
    }
    void require_known(std::string_view what, const std::string& word,
                       const std::vector<std::string_view>& words) const {
        if (std::find(words.begin(), words.end(), word) != words.end()) return;
        fail("names an " + base::unknown(what, word, words));
    }
    template <std::size_t N>
    std::size_t one_of(std::string_view name, const std::array<const char*, N>& words) const {
        const std::string word = text(name);
        require_known(name, word, {words.begin(), words.end()});
        return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) -
                                        words.begin());
    }
    void set_recipe(rule& r) const {
        const std::string spelling = text("recipe");
        if (spelling.empty()) return;
        try {
            r.recipe = codec::parse_recipe(spelling);
            codec::require_files_inside(*r.recipe);
        } catch (const base::error& e) {
            fail("has an invalid recipe: " + e.message());
        }
        r.recipe_text = codec::to_string(*r.recipe);
    }

    const report::record& record_;
    const std::string& path_;
    std::size_t number_;
};

bool about_the_same(const rule& a, const rule& b) {
    return a.is == b.is && a.role == b.role && a.setting == b.setting && a.measured == b.measured;
}

// Replaces the rules of the policy that a file extends by its own.
void merge(std::vector<rule>& into, const std::vector<rule>& from) {
    const auto superseded = [&](const rule& old) {
        return std::any_of(from.begin(), from.end(), [&](const rule& r) {
            const bool chooses = r.is == rule_kind::keep || r.is == rule_kind::candidate;
            const bool chose = old.is == rule_kind::keep || old.is == rule_kind::candidate;
            return about_the_same(r, old) || (chooses && chose && r.role == old.role);
        });
    };
    into.erase(std::remove_if(into.begin(), into.end(), superseded), into.end());
    into.insert(into.end(), from.begin(), from.end());
    std::stable_sort(into.begin(), into.end(),
                     [](const rule& a, const rule& b) { return a.is < b.is; });
}

// A veto in words.
std::string limit_text(const rule& r, const std::optional<double>& limit) {
    return limit ? value_text(*r.measured, *limit) : "-";
}

// A candidate on a target, in words.
std::string support_text(const rule& r, const target& on) {
    const supported_format f = support_of(on, r.recipe->preset);
    std::string words(to_string(f.is));
    const std::string recipe = codec::to_string(on_target(*r.recipe, f));
    if (f.is != support::absent && recipe != r.recipe_text) words += " as " + recipe;
    if (f.is == support::emulated && r.native_only) words += ", so not recommended";
    return f.note.empty() ? words : fmt::format("{}: {}", words, f.note);
}

struct rule_on_target {
    const rule& of;
    const target& on;
    bool is(rule_kind k) const { return of.is == k; }
};
constexpr std::array rule_members = std::to_array<report::declared<rule_on_target>>({
    {"rule", "setting|role|keep|candidate|veto", "what the rule is about",
     [](auto& r) { return kinds[static_cast<std::size_t>(r.of.is)]; }},
    {"setting", "string", "of a setting: its name",
     [](auto& r) { return report::only_if(r.is(rule_kind::setting), r.of.setting); }, false},
    {"value", "number", "of a setting: its value",
     [](auto& r) { return report::only_if(r.is(rule_kind::setting), r.of.value); }, false},
    {"role", "string", "role that it is about; empty: all",
     [](auto& r) { return report::only_if(!r.is(rule_kind::setting), r.of.role); }, false},
    {"tensors", "string", "of a role: names, as globs separated by spaces",
     [](auto& r) { return report::only_if(r.is(rule_kind::role), r.of.globs); }, false},
    {"recipe", "string",
     "of a candidate: the recipe; of keep: what it is compared with, may be empty",
     [](auto& r) {
         return report::only_if(r.is(rule_kind::keep) || r.is(rule_kind::candidate),
                                r.of.recipe_text);
     },
     false},
    {"verdict", "safe|evaluate|no", "of a candidate: the best it can be",
     [](auto& r) {
         return report::only_if(r.is(rule_kind::candidate),
                                verdict_keys[static_cast<std::size_t>(r.of.at_best)]);
     },
     false},
    {"native_only", "boolean", "of a candidate: only where the target multiplies it",
     [](auto& r) { return report::only_if(r.is(rule_kind::candidate), r.of.native_only); }, false},
    {"figure", "string", "of a veto: the figure that is judged",
     [](auto& r) {
         return report::only_if(r.is(rule_kind::veto), r.of.measured ? r.of.measured->name : "");
     },
     false},
    {"evaluate", "number?", "of a veto: from here on only a task can say",
     [](auto& r) { return report::only_if(r.is(rule_kind::veto), r.of.evaluate); }, false},
    {"no", "number?", "of a veto: from here on never",
     [](auto& r) { return report::only_if(r.is(rule_kind::veto), r.of.no); }, false},
    {"why", "string", "", [](auto& r) { return r.of.why; }, false},
    {"source", "string", "", [](auto& r) { return r.of.source; }, false},
    {"on_target", "string", "of a candidate, with --target: what the target has",
     [](auto& r) {
         const bool told = r.is(rule_kind::candidate) && !r.on.any();
         return told ? report::value(support_text(r.of, r.on)) : report::value();
     },
     false},
});

struct policy_on_target {
    const policy& of;
    const target& on;
};
constexpr std::array policy_members = std::to_array<report::declared<policy_on_target>>({
    {"name", "string", "", [](auto& p) { return p.of.name; }},
    {"version", "string", "", [](auto& p) { return p.of.version; }, false},
    {"purpose", "string", "", [](auto& p) { return p.of.purpose; }, false},
    {"target", "string", "with --target",
     [](auto& p) { return p.on.any() ? report::value() : report::to_value(p.on.name); }, false},
});

}  // namespace

std::string_view to_string(verdict v) {
    constexpr std::array words{"safe", "needs evaluation", "no"};
    return words[static_cast<std::size_t>(v)];
}

std::span<const setting_row> settings() { return setting_rows; }

double policy::setting(std::string_view key) const {
    for (const rule& r : rules) {
        if (r.is == rule_kind::setting && r.setting == key) return r.value;
    }
    const auto* row = std::ranges::find(setting_rows, key, &setting_row::name);
    if (row != setting_rows.end() && row->otherwise) return *row->otherwise;
    throw base::error(
        base::error_kind::usage,
        fmt::format("the policy '{}' does not set {}: extend a policy that does", name, key));
}

std::string_view policy::role_of(std::string_view role, std::string_view tensor) const {
    for (const rule& r : rules) {
        if (r.is == rule_kind::role && any_matches(r.globs, tensor)) return r.role;
    }
    return role;
}

const rule* policy::kept(std::string_view role) const {
    const auto at = std::find_if(rules.begin(), rules.end(), [&](const rule& r) {
        return r.is == rule_kind::keep && r.role == role;
    });
    return at == rules.end() ? nullptr : &*at;
}

std::vector<const rule*> policy::candidates(std::string_view role) const {
    std::vector<const rule*> out;
    for (const rule& r : rules) {
        if (r.is == rule_kind::candidate && r.role == role) out.push_back(&r);
    }
    return out;
}

std::vector<const rule*> policy::vetoes(std::string_view role) const {
    std::vector<const rule*> out;
    for (const rule& r : rules) {
        if (r.is != rule_kind::veto || (r.role != role && !r.role.empty())) continue;
        const bool overruled =
            r.role.empty() && std::any_of(rules.begin(), rules.end(), [&](const rule& own) {
                return own.is == rule_kind::veto && own.role == role && !own.role.empty() &&
                       own.measured == r.measured;
            });
        if (!overruled) out.push_back(&r);
    }
    return out;
}

std::vector<std::string_view> policy_names() {
    std::vector<std::string_view> names;
    for (const named_policy& p : named) names.push_back(p.name);
    return names;
}

policy find_policy(std::string_view name) {
    // Parsed once: an analysis of an array takes milliseconds. One may extend another.
    struct parsed {
        std::once_flag once;
        std::optional<policy> content;
    };
    static std::array<parsed, named.size()> all;
    for (std::size_t i = 0; i < named.size(); ++i) {
        if (named[i].name != name) continue;
        std::call_once(all[i].once, [&] {
            all[i].content = parse_policy(named[i].file().text, std::string(name));
        });
        return *all[i].content;
    }
    throw base::error(base::error_kind::usage, base::unknown("policy", name, policy_names()));
}

policy parse_policy(std::string_view text, const std::string& path) {
    return parse_policy(report::read_results(text, path), path);
}

policy parse_policy(const report::results_file& file, const std::string& path) {
    const auto fail = [&](const std::string& what) {
        throw base::error(base::error_kind::input, what, {path, {}, {}});
    };
    if (file.kind != "policy") {
        fail(fmt::format("is mx.{}, not a policy: see mx explain policy", file.kind));
    }
    policy p;
    p.name = report::text_of(file.head, "name");
    p.version = report::text_of(file.head, "version");
    p.purpose = report::text_of(file.head, "purpose");
    p.extends = report::text_of(file.head, "extends");
    if (p.name.empty()) fail("has no \"name\"");
    std::vector<rule> own;
    for (std::size_t i = 0; i < file.results.size(); ++i) {
        own.push_back(rule_reader(file.results[i], path, i + 1).read());
    }
    if (!p.extends.empty()) {
        const auto names = policy_names();
        if (std::find(names.begin(), names.end(), p.extends) == names.end()) {
            fail("extends an " + base::unknown("policy", p.extends, names));
        }
        p.rules = find_policy(p.extends).rules;
    }
    merge(p.rules, own);
    for (const setting_row& s : setting_rows) {
        const bool there = std::any_of(p.rules.begin(), p.rules.end(),
                                       [&](const rule& r) { return r.setting == s.name; });
        if (!there && !s.otherwise)
            fail(fmt::format("does not set {}: extend a policy that does", s.name));
    }
    return p;
}

report::document document_of(const policy& p, const target& on) {
    report::document d;
    d.title = fmt::format("mx explain policy: {}", p.name);
    d.head = {{"schema", "mx.policy/1"}};
    report::append(d.head, policy_members, {p, on});
    report::section head, kept, candidates, on_target, vetoes, rest, settings;
    head.heading = fmt::format("{}, version {}", p.name, p.version);
    head.notes.push_back(fmt::format("For {}.", p.purpose));
    kept.heading = "Kept in stored precision";
    kept.columns = {{"role", "tensors"}, {"why", "why"}, {"source", "source"}};
    candidates.heading = "What may be recommended";
    candidates.columns = {{"role", "tensors"},
                          {"recipe", "recipe"},
                          {"at_best", "at best"},
                          {"why", "why"},
                          {"source", "source"}};
    on_target.heading = fmt::format("On {}: {}", on.name, on.summary);
    on_target.columns = {{"role", "tensors"}, {"recipe", "recipe"}, {"on_target", "there"}};
    on_target.notes.push_back(fmt::format("Source: {}.", on.source));
    vetoes.heading = "What rules a recipe out for a tensor";
    vetoes.columns = {{"role", "tensors"}, {"figure", "figure"}, {"evaluate", "evaluate\nfrom"},
                      {"no", "no\nfrom"},  {"why", "why"},       {"source", "source"}};
    rest.heading = "Names";
    rest.columns = {{"role", "role"}, {"tensors", "tensors"}, {"source", "source"}};
    settings.heading = "Settings";
    settings.columns = {{"setting", "setting"},
                        {"value", "value", report::cell::shortest},
                        {"meaning", "meaning"},
                        {"why", "why"},
                        {"source", "source"}};
    for (const rule& r : p.rules) {
        report::record shown = report::written(rule_members, {r, on});
        if (report::find(shown, "on_target") != nullptr) on_target.rows.push_back(shown);
        d.results.push_back(shown);
        if (r.role.empty()) {
            for (auto& [name, value] : shown) {
                if (name == "role") value = "all";
            }
        }
        switch (r.is) {
            case rule_kind::role:
                rest.rows.push_back(std::move(shown));
                break;
            case rule_kind::keep:
                kept.rows.push_back(std::move(shown));
                break;
            case rule_kind::candidate:
                shown.emplace_back("at_best", std::string(to_string(r.at_best)) +
                                                  (r.native_only ? ", where native" : ""));
                candidates.rows.push_back(std::move(shown));
                break;
            case rule_kind::veto:
                for (auto& [name, value] : shown) {
                    if (name == "evaluate") value = limit_text(r, r.evaluate);
                    if (name == "no") value = limit_text(r, r.no);
                }
                vetoes.rows.push_back(std::move(shown));
                break;
            case rule_kind::setting:
                for (const setting_row& s : setting_rows) {
                    if (s.name == r.setting) shown.emplace_back("meaning", std::string(s.meaning));
                }
                settings.rows.push_back(std::move(shown));
                break;
        }
    }
    vetoes.notes.push_back(
        "Calibration: docs/design/policy.md has the data and the largest values.");
    for (const figure& f : figures()) {
        vetoes.notes.push_back(report::item(fmt::format("{}: {}", f.name, f.definition)));
    }
    for (report::section* s : {&head, &kept, &candidates, &on_target, &vetoes, &rest, &settings}) {
        if (s == &rest && rest.rows.empty()) continue;  // a policy need not rename roles
        if (s != &on_target || !on.any()) d.sections.push_back(std::move(*s));
    }
    return d;
}

report::document_schema policy_schema() {
    return report::document_schema(
               "mx.policy/1", "mx explain policy: rules of recommendations",
               "The form in which mx prints a policy and in which --policy reads one. Rules of "
               "`extends` come first; a rule here takes the place of the one about the same thing.",
               false)
        .members(policy_members)
        .member({"extends", "string", "a policy that mx knows by name", false})
        .member({"results", "[#rule]", "a rule each"})
        .define("rule", rule_members);
}

}  // namespace mx::policy
