// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/review.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "libmx/base/task.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/pages/review_data.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/verdict.hpp"
#include "libmx/pages/verdict_records.hpp"
#include "libmx/pages/views/cluster_view.hpp"
#include "libmx/pages/views/compare_view.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/show_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/policy/commands.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t named_inputs = 3;
constexpr std::size_t drilled_tensors = 3;

bool of_analysis(const result_set& s) {
    return s.results != nullptr && report::text_of(*s.head, "schema") == "mx.analysis/1";
}

// A file's name, preceded by its folder if several files have the same name.
std::string telling_path(const std::string& path) {
    constexpr std::array common{"model.", "pytorch_model.", "checkpoint.", "weights.", "adapter_"};
    std::string name = report::last_part(path);
    const bool is_common = std::ranges::any_of(
        common, [&](std::string_view prefix) { return name.rfind(prefix, 0) == 0; });
    if (!is_common || name.size() == path.size()) return name;
    const std::string above = report::last_part(path.substr(0, path.rfind('/')));
    return above.empty() || above == "." ? name : above + "/" + name;
}

std::string title_of(const review_data& e) {
    std::vector<std::string> given;
    for (const input_file& f : e.inputs) {
        if (std::ranges::find(given, f.given) == given.end()) given.push_back(f.given);
    }
    std::vector<std::string> names;
    for (const std::string& path : given) {
        if (names.size() == named_inputs) break;
        names.push_back(telling_path(path));
    }
    if (names.empty()) return "Quantization review";
    const std::size_t more = given.size() - names.size();
    if (more > 0) names.push_back(fmt::format("{} more", more));
    return fmt::format("Quantization review of {}", listed(names));
}

void put(std::vector<report::section>& to, std::vector<report::section> more) {
    for (report::section& s : more) pages::put(to, std::move(s));
}

policy::judged_model judged(std::span<const result_set> sets, const policy::basis& by) {
    policy::measured_model m;
    for (const result_set& s : sets) {
        if (of_analysis(s)) m.add(*s.results, *s.head);
    }
    for (const result_set& s : sets) {
        if (of_analysis(s)) m.add_left_out(*s.tail, *s.head);
    }
    return policy::judge_model(std::move(m), by);
}

// Whether the recipes are the defaults of a run without --recipe.
bool measured_by_default(const review_data& e, const policy::judged_model& m) {
    std::vector<policy::measured_tensor> measured;
    for (const policy::measured_tensor& t : m.tensors) {
        if (!t.left_out.empty()) continue;
        policy::measured_tensor& to = measured.emplace_back();
        to.name = t.name;
        to.role = t.role;
        to.shape = t.shape;
    }
    return e.plan.recipes == policy::recipes_to_measure(m.by, *m.on, measured);
}

// The command that repeats the measurements and makes the page.
std::string repeat_command(const review_data& e, const policy::judged_model& m,
                           std::span<const result_set> sets) {
    if (e.plan.recipes.empty()) return {};
    std::vector<std::string> recipes;
    if (!measured_by_default(e, m)) {
        for (const codec::recipe& r : e.plan.recipes) recipes.push_back(codec::to_string(r));
    }
    std::optional<report::command_line> common;
    for (const result_set& s : sets) {
        if (!of_analysis(s)) continue;
        const auto by = report::given_in(*s.head);
        if (!by) return {};  // arrays in memory have no command
        report::command_line line = policy::measuring_command(*by, recipes, m.options);
        // Sets of different inputs or options have no common command.
        if (common && line != *common) return {};
        common = std::move(line);
    }
    if (!common) return {};
    common->options.push_back({"html", "review.html"});
    return common->text();
}

// The recommended cell of each tensor of the table.
chosen_cells choices_of(const review_data& e, const policy::judged_model& m) {
    chosen_cells chosen(e.table.tensors.size());
    std::vector<std::string> names;
    for (const auto& cell : e.plan.cells) names.push_back(codec::to_string(cell.recipe));
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        const analysis::tensor_identity& of = *e.table.tensors[t].of;
        const auto at = m.table.find(of.file, of.tensor);
        if (!at) continue;
        const std::string& recipe = m.says.decisions[*at].recipe;
        for (std::size_t c = 0; c < names.size(); ++c) {
            if (names[c] == recipe) chosen[t] = c;
        }
    }
    return chosen;
}

// The operands of products in the table.
std::vector<std::size_t> ranked_operands(const review_data& e, const policy::judged_model& m) {
    std::vector<std::size_t> operands;
    for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
        const analysis::tensor_identity& of = *e.table.tensors[t].of;
        const auto at = m.table.find(of.file, of.tensor);
        if (at && m.says.decisions[*at].operand) operands.push_back(t);
    }
    return operands;
}

// Without columns that are empty, or that say the same in all rows, which a note does.
report::section said_once(report::section s) {
    std::string same;
    std::erase_if(s.columns, [&](const report::column& c) {
        if (s.rows.size() < 3 || c.kind != report::cell::text) return false;
        const std::string first = report::text_of(s.rows.front(), c.field);
        const auto differs = [&](const report::record& r) {
            return report::text_of(r, c.field) != first;
        };
        if (std::ranges::any_of(s.rows, differs)) return false;
        if (!first.empty()) same += fmt::format("; {} {}", c.title, first);
        return true;
    });
    if (!same.empty()) s.notes.insert(s.notes.begin(), "All of them: " + same.substr(2) + ".");
    return s;
}

// "BF16, 104 tensors, 18.7 MB in 1 file".
std::string subtitle_of(const review_data& e) {
    std::vector<std::string> dtypes;
    for (const analysis::results_table::row& t : e.table.tensors) {
        if (std::ranges::find(dtypes, t.of->dtype) == dtypes.end()) dtypes.push_back(t.of->dtype);
    }
    if (dtypes.empty() && e.inputs.empty()) return {};
    std::string text;
    if (!dtypes.empty()) {
        text = fmt::format("{}, {}, ", fmt::join(dtypes, " and "),
                           report::plural(e.table.tensors.size(), "tensor"));
    }
    std::uint64_t bytes = 0;
    for (const input_file& f : e.inputs) bytes += static_cast<std::uint64_t>(f.bytes);
    return text +
           fmt::format("{} in {}", bytes_text(bytes), report::plural(e.inputs.size(), "file"));
}

// Marks records that belong to several tensors.
std::string groups_sentence(const review_data& e) {
    std::uint64_t members = 0, records = 0;
    for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
        std::uint64_t most = 0;
        for (const analysis::result& r : e.table.all_of(t)) {
            if (r.group) most = std::max(most, r.group->members);
        }
        members += most;
        records += most > 0 ? 1u : 0u;
    }
    if (records == 0) return {};
    return fmt::format(
        "{} of groups stand for {} (--group): limits are held against a group as a whole, so a "
        "tensor in it can reach one that the group does not.",
        report::plural(records, "record"), report::plural(members, "tensor"));
}

// Tensors whose names tell no role. A run whose user gave patterns has said what they are.
std::string unknown_roles(const review_data& e, std::span<const result_set> sets) {
    const auto has_patterns = [](const result_set& s) {
        const auto given = report::options_in(*s.head);
        return std::ranges::find(given, "role-pattern", &report::given_option::name) != given.end();
    };
    std::size_t count = 0;
    std::string first;
    for (std::size_t i = 0; i < e.table.tensors.size(); ++i) {
        const analysis::tensor_identity& of = *e.table.tensors[i].of;
        const engine::found_role role = engine::role_by_name(of.tensor, of.shape);
        const bool empty = std::ranges::find(of.shape, 0u) != of.shape.end();
        if (empty || role.known || role.name != of.role) continue;
        if (count++ == 0) first = e.tensor_name(i);
    }
    if (std::ranges::any_of(sets, has_patterns)) return {};
    return engine::unknown_roles_text(count, first);
}

// Names without a role, and tensors with NaN, Inf and inputs beyond float32, each listed once for
// all recipes.
std::vector<std::string> warnings_of(const review_data& e, std::span<const result_set> sets) {
    std::vector<std::string> said;
    if (std::string names = unknown_roles(e, sets); !names.empty()) {
        said.push_back(std::move(names));
    }
    std::size_t non_finite = 0, inexact = 0;
    std::string first;
    for (std::size_t i = 0; i < e.table.tensors.size(); ++i) {
        for (const analysis::result& r : e.table.all_of(i)) {
            if (r.elements == 0) continue;
            if (r.nan + r.inf > 0 && non_finite++ == 0) first = e.tensor_name(i);
            inexact += r.inexact_inputs > 0 ? 1u : 0u;
            break;
        }
    }
    if (non_finite > 0) {
        said.push_back(
            fmt::format("{} {} NaN or Inf ({}{}): the other elements of their blocks are poisoned "
                        "and left out of every figure.",
                        report::plural(non_finite, "tensor"), non_finite == 1 ? "holds" : "hold",
                        first, non_finite == 1 ? "" : ", ..."));
    }
    if (inexact > 0) {
        said.push_back(
            fmt::format("{} {} values that are not exact in float32; they were rounded to it once "
                        "(inexact_inputs).",
                        report::plural(inexact, "tensor"), inexact == 1 ? "holds" : "hold"));
    }
    if (std::string groups = groups_sentence(e); !groups.empty()) said.push_back(std::move(groups));
    if (e.repeated > 0) {
        said.push_back(fmt::format("{} {} in more than one document; the first counts.",
                                   report::plural(e.repeated, "result"),
                                   e.repeated == 1 ? "is" : "are"));
    }
    return said;
}

// Indices in the table of the tensors that a recipe harms, worst first.
std::vector<std::size_t> worst_first(const review_data& e, const policy::judged_model& m) {
    std::vector<std::size_t> order;
    for (const policy::risk& r : m.says.risks) {
        const policy::measured_tensor& t = m.tensors[r.tensor];
        if (const auto at = e.table.find(t.file, t.name)) order.push_back(*at);
    }
    return order;
}

constexpr std::array input_members = std::to_array<report::declared<input_file>>({
    {"path", "string", "", [](auto& f) { return f.path; }},
    {"bytes", "count", "", [](auto& f) { return f.bytes; }},
    {"given", "string", "the argument that named it, if that is another path",
     [](auto& f) { return f.given == f.path ? report::value() : report::value(f.given); }, false},
    {"sha256", "string?", "null: it was not taken",
     [](auto& f) { return f.sha256.empty() ? report::value() : report::value(f.sha256); }},
});

constexpr std::array policy_members = std::to_array<report::declared<policy::policy>>({
    {"name", "string", "", [](auto& p) { return p.name; }},
    {"version", "string", "", [](auto& p) { return p.version; }},
});

struct reviewed {
    const review_data& e;
    const policy::judged_model& m;
    const std::string& repeat;
};
constexpr std::array review_members = std::to_array<report::declared<reviewed>>({
    {"inputs", "[#input]", "the files that results are of",
     [](auto& r) { return report::listed(input_members, r.e.inputs); }},
    {"policy", "#policy", "", [](auto& r) { return report::written(policy_members, r.m.by); }},
    {"target", "string", "what the recipes have to run on", [](auto& r) { return r.m.on->name; }},
    {"command", "string?",
     "that measures the same again and makes the page; null: no single command does",
     [](auto& r) { return r.repeat.empty() ? report::value() : report::value(r.repeat); }},
});

// What mx compare and mx cluster say of a set, and their tables.
std::vector<report::section> own_sections(const result_set& s) {
    std::vector<report::section> all;
    if (is_comparison(s)) {
        report::section said = verdict_of(*s.tail);
        said.heading = ranking_heading;
        all.push_back(std::move(said));
    }
    std::ranges::move(compare_view(s), std::back_inserter(all));
    std::ranges::move(cluster_view(s), std::back_inserter(all));
    return all;
}

}  // namespace

report::document_schema report_schema() {
    report::document_schema s(
        "mx.report/3", "mx report",
        "What to ship, tensor by tensor, and why, under a policy (mx explain policy).");
    declare_verdict(s.members(review_members));
    return s.define("input", input_members).define("policy", policy_members);
}

review make_review(std::span<const result_set> sets, const review_options& options,
                   bool with_page) {
    constexpr std::uint64_t steps = 15;
    base::task making(with_page ? "making the page" : "judging", with_page ? steps : 2);
    const review_data e = gather(sets, with_page);
    making.step();
    const policy::judged_model m = judged(sets, options.judged_by);
    making.step();
    const verdict_context context{repeat_command(e, m, sets), warnings_of(e, sets)};
    review out;
    out.first_screen = verdict_sections(m, context);
    if (!m.tensors.empty()) out.summary = verdict_line(m);
    if (!with_page) return out;
    report::document& d = out.page;
    d.title = title_of(e);
    d.subtitle = subtitle_of(e);
    d.head = report::written(review_members, {e, m, context.repeat});
    d.results = decision_records(m);
    d.tail = verdict_members(m, context);
    // The answer of the command that measured begins the page, with its figure; the tables behind
    // it follow the verdict.
    const bool compares = sets.size() == 1 && is_comparison(sets[0]);
    const bool surveys = sets.size() == 1 && is_diagnosis(sets[0]);
    std::vector<report::section> behind;
    for (const result_set& s : sets) std::ranges::move(own_sections(s), std::back_inserter(behind));
    const std::size_t leading = compares ? 2 : surveys ? 1 : 0;
    const auto rest =
        behind.begin() + static_cast<std::ptrdiff_t>(std::min(leading, behind.size()));
    d.sections.assign(std::make_move_iterator(behind.begin()), std::make_move_iterator(rest));
    behind.erase(behind.begin(), rest);
    d.sections.insert(d.sections.end(), out.first_screen.begin(), out.first_screen.end());
    if (surveys) {
        add_block_shares(e, d.sections.front());
    } else if (compares) {
        add_pairs(e, d.sections.front());
        add_ratios(e, ranked_operands(e, m), report::text_of(*sets[0].tail, "baseline"),
                   d.sections[1]);
    } else if (!d.sections.empty()) {
        add_excess(e, ranked_operands(e, m), m.by, d.sections.front());
    }
    const auto add = [&](auto sections) {
        put(d.sections, std::move(sections));
        making.step();
    };
    if (!m.tensors.empty()) {
        add(said_once(worst_section(m)));
        out.worst = most_harmed(m, drilled_tensors);
        out.worst_at = d.sections.size();
        add(groups_section(e));
        add(candidates_section(m));
    }
    add(std::move(behind));
    add(steps_section(e.dumps));
    if (!m.tensors.empty() && !e.classes.empty()) {
        add(choices_section(e, choices_of(e, m)));
    }
    if (!e.classes.empty()) {
        add(layers_section(e));
        add(trade_section(e, choices_of(e, m)));
        add(norms_section(e));
        add(blocks_section(e));
        add(tensors_section(e, worst_first(e, m)));
    }
    add(basis_sections(e, options));
    add(definition_sections(e));
    return out;
}

void add_blocks(review& r, std::span<const show::tensor_view> views) {
    if (views.empty()) return;
    std::vector<report::section> blocks = worst_blocks_sections(views);
    r.page.sections[r.worst_at - 1].notes.push_back(fmt::format(
        "Collapsed below, and not printed: the worst blocks of {}, and the worst of these in "
        "full.",
        views.size() == 1 ? "the first" : fmt::format("the first {}", views.size())));
    r.page.sections.insert(r.page.sections.begin() + static_cast<std::ptrdiff_t>(r.worst_at),
                           std::make_move_iterator(blocks.begin()),
                           std::make_move_iterator(blocks.end()));
}

}  // namespace mx::pages
