// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/review.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/pages/evidence.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t named_inputs = 3;

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

report::list ladder_members(const evidence& e, const recommendation& r) {
    report::list rungs;
    for (const rung& step : ladder(r.candidates)) {
        rungs.emplace_back(report::record{{"recipe", name_of(e.plan, r, step.candidate)},
                                          {"bits_per_element", bits_of(r, step.candidate)},
                                          {"up_to_sqnr_db", finite_or_null(step.up_to_db)}});
    }
    return rungs;
}

report::record result_of(const evidence& e, const recommendation& r) {
    const candidate* c = r.chosen ? &r.candidates[*r.chosen] : nullptr;
    const report::value none;
    const auto rate = [&](std::string_view name) {
        return c == nullptr ? none : report::to_value(c->rate(name));
    };
    return {{"role", r.role},
            {"tensors", report::tally(r.tensors.size())},
            {"not_everywhere", r.not_everywhere},
            {"elements", report::whole(r.elements)},
            {"recipe", r.undecided ? none : name_of(e.plan, r, r.chosen)},
            {"bits_per_element", r.undecided ? none : bits_of(r, r.chosen)},
            {"sqnr_db", c == nullptr ? none : finite_or_null(c->sqnr_db)},
            {"clamp_rate", rate("clamp_rate")},
            {"underflow_rate", rate("underflow_rate")},
            {"collapsed_block_rate", rate("collapsed_block_rate")},
            {"stored_dtypes", report::list(r.dtypes.begin(), r.dtypes.end())},
            {"keeps_precision", r.kept}};
}

void put(std::vector<report::section>& to, std::vector<report::section> more) {
    for (report::section& s : more) pages::put(to, std::move(s));
}

}  // namespace

report::document make_review(std::span<const result_set> sets, const review_options& options) {
    const evidence e = gather(sets);
    recommendations all;
    for (const tensor_class& c : e.classes) {
        all.push_back(recommend(c.role, e.table, e.plan, c.tensors, options.choice));
    }
    report::document d;
    d.title = title_of(e);
    d.head = {{"min_sqnr_db", options.choice.min_sqnr_db}};
    report::list ladders;
    for (const recommendation& r : all) {
        d.results.push_back(result_of(e, r));
        if (r.undecided || r.kept) continue;
        ladders.emplace_back(report::record{{"role", r.role}, {"ladder", ladder_members(e, r)}});
    }
    d.tail = {{"ladders", std::move(ladders)}};
    if (!all.empty()) {
        put(d.sections, verdict_sections(e, all, options.choice));
        put(d.sections, worst_section(e, all));
        put(d.sections, changes_sections(e, all, options.choice));
        put(d.sections, finding_sections(e));
    }
    put(d.sections, steps_section(e));
    put(d.sections, basis_sections(e, options));
    if (!all.empty()) {
        put(d.sections, layers_section(e));
        put(d.sections, trade_section(e, all));
        put(d.sections, blocks_section(e));
        put(d.sections, norms_section(e));
        put(d.sections, tensors_section(e, all));
    }
    put(d.sections, definition_sections(e, options.choice));
    return d;
}

}  // namespace mx::pages
