// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/ranking.hpp"
#include "libmx/base/decibels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mx::compare {
namespace {

// The cells of a plan and its baseline, without those that have no measured tensor.
std::vector<const cell*> contenders(const analysis::results_table& b, const sweep_plan& plan,
                                    std::span<const std::size_t> among, std::size_t phase) {
    std::vector<const cell*> all;
    const auto add = [&](const cell& c) {
        if (!unmeasured(b, c, among, phase)) all.push_back(&c);
    };
    for (const cell& c : plan.cells) add(c);
    if (!plan.baseline_is_cell) add(plan.baseline);
    return all;
}

// Finds the tensors measured under all contenders.
void choose_tensors(const analysis::results_table& b, const std::vector<const cell*>& cells,
                    std::span<const std::size_t> among, std::size_t phase, common_tensors& to) {
    for (const std::size_t t : among) {
        const auto measured = std::ranges::count_if(
            cells, [&](const cell* c) { return rmse_of(b, t, *c, phase).has_value(); });
        if (measured == 0) continue;
        if (static_cast<std::size_t>(measured) < cells.size()) {
            ++to.not_everywhere;
            continue;
        }
        to.tensors.push_back(t);
        const auto counted = [&](const cell* c) {
            return b.of(t, c->runs.front(), phase).counted();
        };
        to.uneven += std::ranges::any_of(
            cells, [&](const cell* c) { return counted(c) != counted(cells.front()); });
    }
}

// Whether one of the runs of a cell has no error on a tensor.
bool exact_on(const analysis::results_table& b, std::size_t tensor, const cell& c,
              std::size_t phase) {
    return std::ranges::any_of(c.runs,
                               [&](std::size_t run) { return b.of(tensor, run, phase).rmse == 0; });
}

void choose_compared(const analysis::results_table& b, std::vector<const cell*> cells,
                     std::size_t phase, common_tensors& to) {
    std::erase_if(cells, [&](const cell* c) {
        return std::ranges::all_of(to.tensors,
                                   [&](std::size_t t) { return exact_on(b, t, *c, phase); });
    });
    for (const std::size_t t : to.tensors) {
        const bool exact =
            std::ranges::any_of(cells, [&](const cell* c) { return exact_on(b, t, *c, phase); });
        if (!exact) to.compared.push_back(t);
    }
}

// Chooses from `among` (indices into the table). Cells without a measured tensor do not reduce
// `tensors`, cells without an error in any of these do not reduce `compared`.
common_tensors tensors_in_common(const analysis::results_table& b, const sweep_plan& plan,
                                 std::span<const std::size_t> among, std::size_t phase) {
    common_tensors c;
    const std::vector<const cell*> cells = contenders(b, plan, among, phase);
    choose_tensors(b, cells, among, phase, c);
    choose_compared(b, cells, phase, c);
    return c;
}

// R-MSEs of one run next to the baseline's, tensor by tensor.
struct ratios {
    double logarithms = 0;
    std::int64_t compared = 0;

    void add(double rmse, const std::optional<double>& baseline) {
        if (std::isnan(rmse) || !baseline || rmse == 0 || *baseline == 0) return;
        logarithms += std::log(rmse / *baseline);
        ++compared;
    }
};

// Means of figures that every seed has.
class seed_means {
  public:
    void add(const std::optional<double>& value) {
        if (value) values_.push_back(*value);
        ++seeds_;
    }
    std::optional<base::estimate> get() const {
        if (values_.empty() || values_.size() < seeds_) return {};
        return base::estimate_of(values_);
    }

  private:
    std::vector<double> values_;
    std::size_t seeds_ = 0;
};

standing stand(const analysis::results_table& b, const sweep_plan& plan, const cell& c,
               const common_tensors& over, std::size_t phase, pooling how) {
    standing s;
    s.exact = true;
    seed_means ratio, nrmse, decibels, mean_decibels;
    std::array<seed_means, pooled_rates.size()> rates;
    for (const std::size_t run : c.runs) {
        pool all;
        all.how = how;
        std::int64_t only_exact = 0, only_baseline_exact = 0;
        for (const std::size_t t : over.tensors) {
            const analysis::result& r = b.of(t, run, phase);
            all.add(r);
            const bool baseline_exact = rmse_of(b, t, plan.baseline, phase) == 0.0;
            only_exact += r.rmse == 0 && !baseline_exact ? 1 : 0;
            only_baseline_exact += r.rmse > 0 && baseline_exact ? 1 : 0;
        }
        ratios relative;
        for (const std::size_t t : over.compared) {
            relative.add(b.of(t, run, phase).rmse, rmse_of(b, t, plan.baseline, phase));
        }
        const auto count = static_cast<double>(relative.compared);
        ratio.add(relative.compared == 0 ? std::optional<double>()
                                         : std::exp(relative.logarithms / count));
        nrmse.add(all.nrmse());
        decibels.add(all.x2 == 0 || all.error2 == 0 ? std::optional<double>()
                                                    : base::decibels_of_power(all.error2 / all.x2));
        mean_decibels.add(all.mean_sqnr_db());
        for (std::size_t i = 0; i < pooled_rates.size(); ++i) rates[i].add(all.rate(i));
        // Seeds do not change shapes and skipped tensors, but can change which tensors are exact.
        s.tensors = all.tensors;
        s.compared = relative.compared;
        s.only_exact = only_exact;
        s.only_baseline_exact = only_baseline_exact;
        s.exact = s.exact && all.tensors > 0 && all.lossless;
        s.bits_per_element = all.elements == 0 ? 0 : all.bits / all.elements;
    }
    s.rmse_ratio = ratio.get();
    s.nrmse = nrmse.get();
    s.sqnr_db = decibels.get();
    s.mean_sqnr_db = mean_decibels.get();
    for (std::size_t i = 0; i < pooled_rates.size(); ++i) {
        if (const auto e = rates[i].get()) s.rates[i] = e->mean;
    }
    return s;
}

void count_wins(const analysis::results_table& b, const sweep_plan& plan, std::size_t phase,
                ranking& to) {
    std::vector<std::optional<double>> rmse(plan.cells.size());
    for (const std::size_t t : to.over.tensors) {
        double least = std::numeric_limits<double>::infinity();
        double most = 0;
        for (std::size_t c = 0; c < plan.cells.size(); ++c) {
            rmse[c] = rmse_of(b, t, plan.cells[c], phase);
            if (!rmse[c]) continue;
            least = std::min(least, *rmse[c]);
            most = std::max(most, *rmse[c]);
        }
        if (most == 0) continue;
        ++to.contests;
        for (standing& s : to.cells)
            s.wins += rmse[s.cell] && *rmse[s.cell] <= least * (1 + same_rmse) ? 1 : 0;
    }
}

// The order of standings: exact ones, then by ratio, then those without a ratio.
double place(const standing& s) {
    if (s.exact) return 0;
    return s.rmse_ratio ? s.rmse_ratio->mean : std::numeric_limits<double>::infinity();
}

bool dominates(const trade& a, const trade& b) {
    if (!a.sqnr_db || a.bits > b.bits) return false;
    const bool better = *a.sqnr_db > *b.sqnr_db + same_decibels;
    return better || (a.bits < b.bits && *a.sqnr_db >= *b.sqnr_db - same_decibels);
}

}  // namespace

std::optional<double> figure_of(const analysis::results_table& b, std::size_t tensor, const cell& c,
                                double analysis::result::*figure, std::size_t phase) {
    double sum = 0;
    for (const std::size_t run : c.runs) sum += b.of(tensor, run, phase).*figure;
    return analysis::defined(sum / static_cast<double>(c.runs.size()));
}

void pool::add(const analysis::result& r) {
    const double counted = r.counted();
    elements += static_cast<double>(r.elements);
    bits += analysis::value_or(r.bits_per_element, 0) * static_cast<double>(r.elements);
    if (std::isnan(r.rmse)) return;
    ++tensors;
    lossless = lossless && r.rmse == 0;
    const double error = how == pooling::equal_rms ? analysis::value_or(r.nrmse, 0) : r.rmse;
    const double size = how == pooling::as_stored ? analysis::value_or(r.rms, 0)
                        : std::isnan(r.nrmse)     ? 0
                                                  : 1;
    const double e2 = error * error * counted;
    error2 += e2;
    x2 += size * size * counted;
    if (!std::isnan(r.sqnr_db)) {
        decibels += r.sqnr_db;
        ++inexact;
    }
    for (std::size_t i = 0; i < pooled_rates.size(); ++i) {
        const double rate = r.*pooled_rates[i].figure;
        if (std::isnan(rate)) continue;
        using of = pooled_rate::whole;
        const double weight = pooled_rates[i].of == of::elements ? counted
                              : pooled_rates[i].of == of::blocks
                                  ? analysis::value_or(r.eligible_blocks, 0)
                                  : e2;
        part[i] += rate * weight;
        whole[i] += weight;
    }
}

std::optional<double> pool::nrmse() const {
    if (x2 == 0) return {};
    return std::sqrt(error2 / x2);
}

std::optional<double> pool::mean_sqnr_db() const {
    if (inexact == 0) return {};
    return decibels / static_cast<double>(inexact);
}

std::optional<double> pool::rate(std::size_t i) const {
    if (whole[i] == 0) return {};
    return std::min(1.0, part[i] / whole[i]);
}

bool unmeasured(const analysis::results_table& b, const cell& c, std::span<const std::size_t> among,
                std::size_t phase) {
    return std::ranges::none_of(among,
                                [&](std::size_t t) { return rmse_of(b, t, c, phase).has_value(); });
}

bool stands_before(const standing& a, const standing& b) {
    return place(a) * (1 + same_rmse) < place(b);
}

std::optional<std::size_t> best_on(const sweep_plan& plan, const analysis::results_table& b,
                                   std::size_t tensor) {
    std::optional<std::size_t> best;
    double least = 0;
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
        const auto rmse = rmse_of(b, tensor, plan.cells[i]);
        if (!rmse || (best && *rmse >= least)) continue;
        best = i;
        least = *rmse;
    }
    return best;
}

ranking rank(const analysis::results_table& b, const sweep_plan& plan,
             std::span<const std::size_t> among, std::size_t phase, pooling how) {
    ranking r;
    r.over = tensors_in_common(b, plan, among, phase);
    for (std::size_t c = 0; c < plan.cells.size(); ++c) {
        r.cells.push_back(stand(b, plan, plan.cells[c], r.over, phase, how));
        r.cells.back().cell = c;
    }
    count_wins(b, plan, phase, r);
    // Of equal ones, the one with fewer bits, then the first one in the sweep.
    std::ranges::stable_sort(r.cells, [](const standing& x, const standing& y) {
        if (place(x) != place(y)) return place(x) < place(y);
        return x.bits_per_element < y.bits_per_element;
    });
    return r;
}

std::vector<std::size_t> all_tensors(const analysis::results_table& b) {
    std::vector<std::size_t> all(b.tensors.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

std::vector<bool> pareto_front(std::span<const trade> points) {
    std::vector<bool> front;
    for (const trade& p : points) {
        front.push_back(
            p.sqnr_db.has_value() &&
            std::ranges::none_of(points, [&](const trade& other) { return dominates(other, p); }));
    }
    return front;
}

}  // namespace mx::compare
