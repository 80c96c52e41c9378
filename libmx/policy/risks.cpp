// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/risks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "libmx/report/cells.hpp"

namespace mx::policy {
namespace {

// A tensor that loses a smaller share of its elements is not listed.
constexpr double noted_loss = 0.01;

// The candidate whose risks come first: the recommended one, or the one that would have been.
std::size_t first_choice(const class_judgement& c) {
    if (c.chosen) return *c.chosen;
    const auto at = std::find_if(c.candidates.begin(), c.candidates.end(),
                                 [](const class_recipe& r) { return r.is == verdict::safe; });
    return static_cast<std::size_t>(at - c.candidates.begin());
}

std::string remedy_of(const class_judgement& c, std::size_t operand, const decision& d,
                      const risk& r) {
    if (d.undecided) return "undecided";
    if (d.figures == nullptr) return "keep its stored precision";
    if (r.recommended && r.is != verdict::no) return {};
    for (const class_recipe& own : c.candidates) {
        const trial& t = own.trials[operand];
        if (t.of != d.figures) continue;
        if (t.lost == 0) return fmt::format("{} loses none", d.recipe);
        return fmt::format("{} loses {} %", d.recipe, report::percent_text(t.lost));
    }
    return d.recipe;
}

}  // namespace

void rank_risks(judgement& j, std::span<const measured_tensor> tensors, double dominant) {
    const auto elements = [&](std::size_t tensor) {
        return static_cast<double>(tensors[tensor].elements);
    };
    const auto worse = [&](const risk& a, const risk& b) {
        const auto key = [&](const risk& r) {
            return std::tuple(r.is == verdict::no, r.lost, r.is, r.recommended,
                              tensors[r.tensor].elements);
        };
        return key(a) > key(b);
    };
    double all = 0, lost = 0, most = 0, share = 0;
    for (const class_judgement& c : j.classes) {
        const std::size_t first = first_choice(c);
        for (std::size_t k = 0; k < c.operands.size(); ++k) {
            const std::size_t tensor = c.operands[k];
            all += elements(tensor);
            std::optional<risk> worst;
            for (std::size_t n = 0; n < c.candidates.size(); ++n) {
                const trial& t = c.candidates[n].trials[k];
                if (t.of == nullptr || c.candidates[n].is == verdict::no) continue;
                risk r{tensor,
                       c.candidates[n].recipe,
                       c.chosen && n == first,
                       t.lost,
                       0,
                       t.is,
                       t.worst,
                       {}};
                if (!worst || worse(r, *worst)) worst = std::move(r);
                if (n != first || c.quantized) continue;
                const double here = t.lost * elements(tensor);
                lost += here;
                if (here <= most) continue;
                most = here;
                share = t.lost;
                j.dominant = tensor;
            }
            if (!worst) continue;
            worst->remedy = remedy_of(c, k, j.decisions[tensor], *worst);
            j.risks.push_back(std::move(*worst));
        }
    }
    if (most <= dominant * lost || share < noted_loss) j.dominant.reset();
    for (risk& r : j.risks) r.of_operands = r.lost * elements(r.tensor) / all;
    std::stable_sort(j.risks.begin(), j.risks.end(), worse);
}

}  // namespace mx::policy
