// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/compare_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "libmx/base/joined.hpp"
#include "libmx/pages/views/tensor_remarks.hpp"
#include "libmx/report/cells.hpp"

namespace mx::documents {
namespace {

using namespace compare;

using report::plural;

// A smaller difference in bits does not show in print.
constexpr double same_bits = 0.005;

std::string cost_text(const standing& s, const standing* baseline) {
    std::string text = fmt::format("It takes {:.2f} bits per element", s.bits_per_element);
    if (baseline == nullptr) return text + ".";
    const double more = s.bits_per_element - baseline->bits_per_element;
    if (std::abs(more) < same_bits) return text + ", as the baseline does.";
    return fmt::format("{}, {:.2f} {} than the baseline.", text, std::abs(more),
                       more > 0 ? "more" : "fewer");
}

const standing* baseline_of(const sweep_plan& plan, const comparison& c) {
    for (const standing& s : c.overall.cells) {
        if (plan.cells[s.cell].name == plan.baseline.name) return &s;
    }
    return nullptr;
}

// "mxfp8:scale=rceil has the least error: 0.9712 of the baseline's R-MSE (geometric mean over 33
// tensors); its R-MSE is the smallest in 21 of 36 tensors."
std::string winner_text(const sweep_plan& plan, const comparison& c) {
    std::vector<std::string> names;
    for (std::size_t place = 0; place < c.best.size(); ++place) {
        if (c.best[place]) names.push_back(plan.cells[c.overall.cells[place].cell].name);
    }
    if (names.empty()) return {};
    const standing& first = c.overall.cells.front();
    const bool several = names.size() > 1;
    std::string text = fmt::format("{} {}", base::joined(names, " and "), several ? "have" : "has");
    if (first.exact) {
        text += first.tensors == 1
                    ? std::string(" no error.")
                    : fmt::format(" no error in any of {}.", plural(first.tensors, "tensor"));
        return text + " " + cost_text(first, baseline_of(plan, c));
    }
    const bool is_baseline = std::ranges::find(names, plan.baseline.name) != names.end();
    text += several ? " the same and the least error" : " the least error";
    if (is_baseline) {
        text += several ? ", the baseline among them" : " and is the baseline";
    } else {
        text += fmt::format(": {} of the baseline's R-MSE (geometric mean over {})",
                            report::significant_text(first.rmse_ratio->mean, 4),
                            plural(first.compared, "tensor"));
    }
    text += fmt::format("; {} R-MSE is the smallest in {} of {}", several ? "their" : "its",
                        first.wins, plural(c.overall.contests, "tensor"));
    const auto most = std::ranges::max_element(c.overall.cells, {}, &standing::wins);
    if (most->wins > first.wins) {
        text += fmt::format(" ({} in {})", plan.cells[most->cell].name, most->wins);
    }
    text += ".";
    return text + " " +
           (is_baseline ? cost_text(first, nullptr) : cost_text(first, baseline_of(plan, c)));
}

// Leads below this many percent count as none.
constexpr double least_lead = 0.01;

// The relation of the first of two to the second.
std::string lead_text(const standing& a, const standing& b, const std::string& second) {
    if (!stands_before(a, b)) return fmt::format("{} has the same error", second);
    const double less = 100 * (1 - a.rmse_ratio->mean / b.rmse_ratio->mean);
    if (less < least_lead) return fmt::format("{} is within {} % of it", second, least_lead);
    return fmt::format("its R-MSE is {} % less than that of {}", report::significant_text(less, 2),
                       second);
}

std::string class_text(const sweep_plan& plan, const comparison& c, const bits_class& k) {
    const standing& best = c.overall.cells[k.best];
    std::string text =
        fmt::format("{} to {} bits: {}", k.bits, k.bits + 1, plan.cells[best.cell].name);
    if (best.exact) text += ", exact";
    if (best.sqnr_db) text += fmt::format(", {} dB", report::fixed_text(best.sqnr_db->mean, 2));
    if (k.best == k.second || !best.rmse_ratio) return text + ".";
    const standing& second = c.overall.cells[k.second];
    if (!second.rmse_ratio) return text + ".";
    return fmt::format("{}; {}.", text, lead_text(best, second, plan.cells[second.cell].name));
}

// Pairs of neighbours that the seeds do not separate: the first and second of each class.
void add_interval_warnings(const sweep_plan& plan, const comparison& c, report::notes& notes) {
    for (const bits_class& k : c.classes) {
        const standing& a = c.overall.cells[k.best];
        const standing& b = c.overall.cells[k.second];
        if (k.best == k.second || !within_interval(a, b)) continue;
        notes.push_back(report::item(fmt::format(
            "{} and {} are closer than the interval of their seeds; more seeds (--draws) may "
            "reverse the order.",
            plan.cells[a.cell].name, plan.cells[b.cell].name)));
    }
}

void add_phase_warnings(const sweep_plan& plan, const comparison& c, report::notes& notes) {
    for (const phase_group& g : c.phases) {
        if (!g.contest || !g.contest->within_swing()) continue;
        notes.push_back(report::item(fmt::format(
            "{}{}.",
            g.name.empty() ? std::string() : fmt::format("Among the rules of {}, ", g.name),
            phase_sentence(*g.contest, plan.cells[g.contest->best].name,
                           plan.cells[g.contest->second].name))));
    }
}

// The tensors that the ranking excludes.
void add_coverage(const sweep_plan& plan, const comparison& c, report::notes& notes) {
    const common_tensors& over = c.overall.over;
    const bool one = over.not_everywhere == 1;
    if (const std::size_t others = c.table.tensors.size() - c.tensors.size(); others > 0) {
        notes.push_back(report::item(fmt::format(
            "Not ranked: {}, not operands of products; the table by role has them (--role, "
            "--tensor: rank those chosen).",
            plural(others, "tensor"))));
    }
    if (over.not_everywhere > 0) {
        notes.push_back(report::item(fmt::format(
            "{} {} no figure under some of the cells and {} left out of the ranking, which is "
            "over the same tensors for every cell.",
            plural(over.not_everywhere, "tensor"), one ? "has" : "have", one ? "is" : "are")));
    }
    if (over.uneven > 0) {
        notes.push_back(report::item(fmt::format(
            "In {} the cells leave out different numbers of elements (NaN, Inf or scales beyond "
            "their range); errors there are over different elements.",
            plural(over.uneven, "tensor"))));
    }
    std::vector<std::string> without;
    for (const standing& s : c.overall.cells) {
        if (s.tensors == 0) without.push_back(plan.cells[s.cell].name);
    }
    if (!without.empty() && without.size() < c.overall.cells.size()) {
        notes.push_back(report::item(
            fmt::format("Without a figure for any tensor: {}.", base::joined(without, ", "))));
    }
    pages::tensor_remarks remarks;
    for (std::size_t t = 0; t < c.table.tensors.size(); ++t) {
        for (const analysis::result& r : c.table.all_of(t)) remarks.see(r);
    }
    std::ranges::move(remarks.notes(), std::back_inserter(notes));
}

}  // namespace

report::notes compare_verdict(const sweep_plan& plan, const comparison& c) {
    report::notes notes;
    if (c.overall.cells.empty()) return notes;
    if (c.overall.contests == 0) {
        add_coverage(plan, c, notes);
        return notes;
    }
    if (std::string text = winner_text(plan, c); !text.empty()) notes.push_back(std::move(text));
    if (c.classes.size() > 1) {
        for (const bits_class& k : c.classes) notes.push_back(report::item(class_text(plan, c, k)));
    }
    add_interval_warnings(plan, c, notes);
    add_phase_warnings(plan, c, notes);
    add_coverage(plan, c, notes);
    return notes;
}

}  // namespace mx::documents
