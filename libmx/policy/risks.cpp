// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/risks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "libmx/report/cells.hpp"

namespace mx::policy {
namespace {

std::string remedy_of(const class_judgement& c, std::size_t operand, const decision& d,
                      const risk& r) {
    if (d.undecided) return {};
    if (!d.column) {
        return d.whole_blocks ? "keep its stored precision"
                              : "it is kept: its K does not consist of whole blocks";
    }
    if (r.recommended && r.is != verdict::no) return {};
    for (const class_recipe& own : c.candidates) {
        const trial& t = own.trials[operand];
        if (t.column != d.column) continue;
        return fmt::format("{}, {} times the squared error of normal data", d.recipe,
                           report::significant_text(t.over_normal, 3));
    }
    return d.recipe;
}

}  // namespace

void rank_risks(judgement& j, const measured_model& m, measurements& known) {
    const auto worse = [&](const risk& a, const risk& b) {
        const auto key = [&](const risk& r) {
            return std::tuple(r.is == verdict::no, r.one_element == 0, r.over_normal, r.is,
                              r.energy, m.tensors[r.tensor].elements);
        };
        return key(a) > key(b);
    };
    for (const class_judgement& c : j.classes) {
        for (std::size_t k = 0; k < c.operands.size(); ++k) {
            const std::size_t tensor = c.operands[k];
            std::optional<risk> worst;
            for (std::size_t n = 0; n < c.candidates.size(); ++n) {
                const class_recipe& of = c.candidates[n];
                const trial& t = of.trials[k];
                if (!t.column || of.is == verdict::no || (c.chosen && n != *c.chosen)) {
                    continue;
                }
                const analysis::result figures = m.table.of(tensor, *t.column);
                const auto defined = [](double x) { return std::isnan(x) ? 0 : x; };
                risk r{tensor,
                       of.recipe,
                       c.chosen.has_value(),
                       t.over_normal,
                       t.one_element,
                       defined(figures.nrmse * figures.nrmse),
                       defined(figures.underflow_rate),
                       defined(known.normal(of.recipe).underflow_rate),
                       t.is,
                       t.worst,
                       {}};
                if (!worst || worse(r, *worst)) worst = std::move(r);
            }
            if (!worst || (!worst->why && worst->over_normal == 0)) continue;
            // No recipe is recommended for it; that it would be damaged is worth saying.
            if (!j.decisions[tensor].whole_blocks && !worst->why) continue;
            worst->remedy = remedy_of(c, k, j.decisions[tensor], *worst);
            j.risks.push_back(std::move(*worst));
        }
    }
    std::ranges::stable_sort(j.risks, worse);
}

}  // namespace mx::policy
