// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/studies/compare/ranking.hpp"

namespace mx::compare {
namespace {

// Whether the factor of a phase makes elements of a tensor Inf (beyond float32), which poisons
// their blocks.
bool loses_elements(const analysis::results_table& b, std::size_t tensor, const cell& c,
                    std::size_t phase) {
    return std::ranges::any_of(c.runs, [&](std::size_t run) {
        return b.of(tensor, run, phase).counted() != b.of(tensor, run).counted();
    });
}

std::string percent(double share) {
    const double p = 100 * share;
    if (p == 0) return "0";
    return fmt::format("{:.{}f}", p, p < 0.095 ? 3 : p < 0.95 ? 2 : p < 9.5 ? 1 : 0);
}

}  // namespace

std::vector<float> phase_factors() {
    std::vector<float> factors;
    for (std::size_t i = 0; i < phase_count; ++i) {
        factors.push_back(static_cast<float>(
            std::exp2(static_cast<double>(i) / static_cast<double>(phase_count))));
    }
    return factors;
}

std::vector<std::vector<double>> phase_errors(const analysis::results_table& b,
                                              const sweep_plan& plan,
                                              std::span<const std::size_t> among,
                                              std::span<const std::size_t> tensors) {
    std::vector<std::vector<double>> logarithms(among.size(), std::vector<double>(b.phases()));
    std::size_t counted = 0;
    for (const std::size_t t : tensors) {
        std::vector<std::vector<double>> of_tensor(among.size(), std::vector<double>(b.phases()));
        bool whole = true;
        for (std::size_t i = 0; i < among.size() && whole; ++i) {
            for (std::size_t p = 0; p < b.phases() && whole; ++p) {
                const cell& c = plan.cells[among[i]];
                const auto nrmse = figure_of(b, t, c, &analysis::result::nrmse, p);
                whole = nrmse && *nrmse > 0 && !loses_elements(b, t, c, p);
                if (whole) of_tensor[i][p] = std::log(*nrmse);
            }
        }
        if (!whole) continue;
        ++counted;
        for (std::size_t i = 0; i < among.size(); ++i) {
            for (std::size_t p = 0; p < b.phases(); ++p) logarithms[i][p] += of_tensor[i][p];
        }
    }
    if (counted == 0) return {};
    for (std::vector<double>& of_cell : logarithms) {
        for (double& v : of_cell) v = std::exp(v / static_cast<double>(counted));
    }
    return logarithms;
}

std::optional<phase_contest> judge_phases(std::span<const std::size_t> among,
                                          const std::vector<std::vector<double>>& errors) {
    if (errors.size() < 2 || errors.front().empty()) return {};
    std::size_t best = 0;
    for (std::size_t i = 1; i < errors.size(); ++i) {
        if (errors[i].front() < errors[best].front()) best = i;
    }
    std::size_t second = best == 0 ? 1 : 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
        if (i != best && errors[i].front() < errors[second].front()) second = i;
    }
    phase_contest c;
    c.best = among[best];
    c.second = among[second];
    for (std::size_t p = 0; p < errors[best].size(); ++p) {
        if (!(errors[best][p] > 0) || !(errors[second][p] > 0)) return {};
        c.ratio.push_back(errors[second][p] / errors[best][p]);
    }
    c.least = *std::ranges::min_element(c.ratio);
    c.greatest = *std::ranges::max_element(c.ratio);
    c.reversed =
        static_cast<std::size_t>(std::ranges::count_if(c.ratio, [](double r) { return r < 1; }));
    return c;
}

std::string phase_sentence(const phase_contest& c, const std::string& best,
                           const std::string& second) {
    const std::string order =
        c.reversed == 0
            ? fmt::format("the order holds in all {} phases", c.ratio.size())
            : fmt::format("the order reverses in {} of {} phases", c.reversed, c.ratio.size());
    if (c.swing() == 0) {
        return fmt::format("{} beats {} by {} % wherever sigma lies in its binade", best, second,
                           percent(c.win()));
    }
    return fmt::format(
        "{} beats {} by {} %, {} the ratio moves by {} % with the position of sigma "
        "in its binade; {}",
        best, second, percent(c.win()), c.within_swing() ? "but" : "and", percent(c.swing()),
        order);
}

}  // namespace mx::compare
