// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/review.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "libmx/pages/evidence.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/verdict.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/policy/missing.hpp"
#include "libmx/policy/results.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t named_inputs = 3;

bool is_analysis(const result_set& s) {
    return s.results != nullptr && report::text_of(*s.head, "schema") == "mx.analysis/1";
}

std::string title_of(const evidence& e) {
    std::vector<std::string> names;
    for (const input_file& f : e.inputs) {
        if (names.size() == named_inputs) break;
        names.push_back(evidence::short_path(f.path));
    }
    if (names.empty()) return "Quantization review";
    const std::size_t more = e.inputs.size() - names.size();
    if (more > 0) names.push_back(fmt::format("{} more", more));
    return fmt::format("Quantization review of {}", listed(names));
}

void put(std::vector<report::section>& to, std::vector<report::section> more) {
    for (report::section& s : more) pages::put(to, std::move(s));
}

policy::judged_model judged(std::span<const result_set> sets, const policy::basis& by) {
    std::vector<policy::measured_tensor> tensors;
    for (const result_set& s : sets) {
        if (is_analysis(s)) policy::add_results(*s.results, tensors);
    }
    for (const result_set& s : sets) {
        if (is_analysis(s)) policy::add_left_out(*s.tail, tensors);
    }
    return policy::judge_model(std::move(tensors), by);
}

// The command that measures what was measured, and makes the page of it.
std::string repeat_command(const evidence& e, std::span<const result_set> sets,
                           const std::string& judging) {
    if (e.plan.recipes.empty()) return {};
    std::string command = "mx analyze";
    for (const input_file& f : e.inputs) command += " " + policy::shell_word(f.path);
    std::set<std::string> selections;
    for (const result_set& s : sets) {
        if (is_analysis(s)) selections.insert(report::text_of(*s.head, "selection"));
    }
    // Sets of several selections have no one command.
    if (selections.size() > 1) return {};
    if (!selections.empty() && !selections.begin()->empty()) command += " " + *selections.begin();
    for (const codec::recipe& r : e.plan.recipes) {
        command += " -r " + policy::shell_word(codec::to_string(r));
    }
    return command + judging + " --html review.html";
}

// NaN, Inf and inputs that float32 does not hold, each tensor once however many recipes.
std::vector<std::string> warnings_of(const evidence& e) {
    std::vector<std::string> said;
    std::size_t non_finite = 0, inexact = 0;
    std::string first;
    for (std::size_t i = 0; i < e.table.tensors.size(); ++i) {
        for (const analysis::result* r : e.table.tensors[i].at) {
            if (r == nullptr || r->elements == 0) continue;
            if (r->nan + r->inf > 0 && non_finite++ == 0) first = e.tensor_name(i);
            inexact += r->inexact_inputs > 0 ? 1u : 0u;
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
            fmt::format("{} {} values that float32 does not hold; they were rounded to it once "
                        "(inexact_inputs).",
                        report::plural(inexact, "tensor"), inexact == 1 ? "holds" : "hold"));
    }
    if (e.repeated > 0) {
        said.push_back(fmt::format("{} {} in more than one document; the first counts.",
                                   report::plural(e.repeated, "result"),
                                   e.repeated == 1 ? "is" : "are"));
    }
    return said;
}

// The board's rows of the tensors that a recipe harms, worst first.
std::vector<std::size_t> worst_first(const evidence& e, const policy::judged_model& m) {
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> rows;
    for (std::size_t i = 0; i < e.table.tensors.size(); ++i) {
        const analysis::tensor_identity& of = *e.table.tensors[i].of;
        rows.emplace(std::pair(std::string_view(of.file), std::string_view(of.tensor)), i);
    }
    std::vector<std::size_t> order;
    for (const policy::risk& r : m.says.risks) {
        const policy::measured_tensor& t = m.tensors[r.tensor];
        const auto at = rows.find({t.file, t.name});
        if (at != rows.end()) order.push_back(at->second);
    }
    return order;
}

report::list input_members(const evidence& e) {
    report::list inputs;
    for (const input_file& f : e.inputs) {
        inputs.emplace_back(
            report::record{{"path", f.path},
                           {"bytes", f.bytes},
                           {"sha256", f.sha256.empty() ? report::value() : f.sha256}});
    }
    return inputs;
}

}  // namespace

review make_review(std::span<const result_set> sets, const review_options& options,
                   bool with_page) {
    const evidence e = gather(sets);
    const policy::judged_model m = judged(sets, options.judged_by);
    const verdict_context context{repeat_command(e, sets, options.judging), warnings_of(e)};
    review out;
    out.first_screen = verdict_sections(m, context);
    if (!m.tensors.empty()) out.summary = verdict_line(m);
    if (!with_page) return out;
    report::document& d = out.page;
    d.title = title_of(e);
    d.head = {{"inputs", input_members(e)},
              {"policy", report::record{{"name", m.by.name}, {"version", m.by.version}}},
              {"target", std::string(m.on->name)},
              {"command", context.repeat.empty() ? report::value() : context.repeat}};
    d.results = decision_records(m);
    d.tail = verdict_members(m, context);
    d.sections = out.first_screen;
    if (!m.tensors.empty()) {
        put(d.sections, worst_section(m));
        put(d.sections, candidates_section(m));
        put(d.sections, finding_sections(e));
    }
    put(d.sections, steps_section(e));
    put(d.sections, basis_sections(e, options));
    if (!e.classes.empty()) {
        put(d.sections, layers_section(e));
        put(d.sections, trade_section(e));
        put(d.sections, blocks_section(e));
        put(d.sections, norms_section(e));
        put(d.sections, tensors_section(e, worst_first(e, m)));
    }
    put(d.sections, definition_sections(e));
    return out;
}

}  // namespace mx::pages
