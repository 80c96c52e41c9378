// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/base/status.hpp"

namespace mx::plan {
namespace {

// Errors as integers.
class error_scale {
  public:
    explicit error_scale(const candidates& from) {
        for (const plan_tensor& t : from.tensors) {
            double most = 0;
            for (const plan_option& o : t.options) most = std::max(most, o.error);
            total_ += most;
        }
    }
    // Rounded up, so that a non-zero error is never counted as zero.
    std::uint64_t units(double error) const {
        if (error == 0) return 0;
        return static_cast<std::uint64_t>(std::ceil(std::max(error / total_ * 0x1p60, 1.0)));
    }
    // Rounded down.
    std::uint64_t limit(double error) const {
        if (total_ == 0) return 0;
        return static_cast<std::uint64_t>(std::min(error / total_, 1.5) * 0x1p60);
    }
    double error(std::uint64_t units) const {
        return static_cast<double>(units) * 0x1p-60 * total_;
    }

  private:
    double total_ = 0;
};

std::optional<double> decibels(double signal, double error) {
    if (!(error > 0) || !(signal > 0)) return {};
    return 10 * std::log10(signal / error);
}

// The tensors of each choice, and what it is among.
struct joint_choice {
    const plan_group& of;
    std::vector<plan_option> options;

    std::uint64_t least_bits() const {
        return std::ranges::min(options, {}, &plan_option::bits).bits;
    }
};

std::vector<joint_choice> choices_of(const candidates& from) {
    std::vector<joint_choice> choices;
    for (const plan_group& g : from.groups) choices.push_back({g, from.options_of(g)});
    return choices;
}

// Errors of a group are summed as integers, as the search sums those of groups.
std::vector<knapsack_class> classes_of(const candidates& from,
                                       const std::vector<joint_choice>& choices,
                                       const error_scale& scale, bool bits_are_cost) {
    std::vector<knapsack_class> classes;
    for (const joint_choice& j : choices) {
        knapsack_class c;
        for (const plan_option& o : j.options) {
            std::uint64_t error = 0;
            for (const std::size_t t : j.of.tensors) {
                error += scale.units(from.option_of(t, o.recipe)->error);
            }
            c.push_back(bits_are_cost ? knapsack_choice{o.bits, error}
                                      : knapsack_choice{error, o.bits});
        }
        classes.push_back(std::move(c));
    }
    return classes;
}

// The budget in bits, an integer; it must not be too small by one because bits per element were
// rounded.
std::uint64_t budget_of(double bits_per_element, std::uint64_t elements) {
    const double bits = bits_per_element * static_cast<double>(elements);
    const double nearest = std::nearbyint(bits);
    const double whole = std::abs(bits - nearest) <= 1e-12 * bits ? nearest : std::floor(bits);
    return static_cast<std::uint64_t>(std::clamp(whole, 0.0, 0x1p61));
}

class planner {
  public:
    planner(const candidates& from, const plan_goal& goal, std::size_t states)
        : from_(from),
          choices_(choices_of(from)),
          goal_(goal),
          states_(states),
          scale_(from),
          signal_(from.signal()) {
        by_bits_ = classes_of(from, choices_, scale_, false);
    }

    plan run() {
        plan p;
        if (!goal_.bits && !goal_.sqnr_db) {
            take(p, {std::vector<std::uint32_t>(choices_.size()), 0, 0, 0, true});
            return p;
        }
        if (goal_.bits) {
            budget_ = budget_of(*goal_.bits, from_.elements());
            const auto s = solve_knapsack(by_bits_, budget_, states_);
            if (!s) refuse_budget();
            take(p, *s);
            p.bound = p.optimal ? p.totals.error : scale_.error(s->bound);
        } else {
            // A minimum SQNR that only an exact result reaches is an error of zero.
            error_limit_ = signal_ > 0 ? signal_ / std::pow(10.0, *goal_.sqnr_db / 10) : 0;
            const auto fewest = least_cost(classes_of(from_, choices_, scale_, true),
                                           scale_.limit(error_limit_), states_);
            if (!fewest) refuse_floor();
            // The choice with the least error among those with that number of bits.
            const auto s = solve_knapsack(by_bits_, fewest->cost, states_);
            take(p, *s);
            p.optimal = fewest->optimal && s->optimal;
            p.bound = static_cast<double>(fewest->bound);
            budget_ = fewest->cost;
        }
        for (const knapsack_point& point : knapsack_hull(by_bits_)) {
            const double error = scale_.error(point.cost);
            p.curve.push_back({point.weight, error, decibels(signal_, error)});
        }
        add_uniform(p);
        return p;
    }

  private:
    void take(plan& p, const knapsack_selection& s) const {
        p.chosen.resize(from_.tensors.size());
        p.optimal = s.optimal;
        for (std::size_t i = 0; i < s.chosen.size(); ++i) {
            const std::uint32_t recipe = choices_[i].options[s.chosen[i]].recipe;
            for (const std::size_t t : choices_[i].of.tensors) {
                p.chosen[t] = static_cast<std::uint32_t>(from_.option_of(t, recipe) -
                                                         from_.tensors[t].options.data());
            }
        }
        for (std::size_t t = 0; t < p.chosen.size(); ++t) {
            const plan_option& o = from_.tensors[t].options[p.chosen[t]];
            p.totals.bits += o.bits;
            p.totals.error += o.error;
        }
        p.totals.sqnr_db = decibels(signal_, p.totals.error);
    }

    void add_uniform(plan& p) const {
        for (std::uint32_t r = 0; r < from_.recipes.size(); ++r) {
            uniform_plan u;
            u.recipe = r;
            bool everywhere = true;
            for (std::size_t t = 0; t < from_.tensors.size(); ++t) {
                const plan_option* const o = from_.option_of(t, r);
                everywhere = o != nullptr;
                if (!everywhere) break;
                u.totals.bits += o->bits;
                u.totals.error += o->error;
            }
            if (!everywhere) continue;
            u.totals.sqnr_db = decibels(signal_, u.totals.error);
            u.within = goal_.bits ? u.totals.bits <= budget_ : u.totals.error <= error_limit_;
            p.uniform.push_back(u);
        }
        for (std::size_t i = 0; i < p.uniform.size(); ++i) {
            if (!p.uniform[i].within) continue;
            if (!p.best_uniform || beats(p.uniform[i].totals, p.uniform[*p.best_uniform].totals)) {
                p.best_uniform = i;
            }
        }
    }

    bool beats(const plan_totals& a, const plan_totals& b) const {
        if (goal_.bits) return a.error != b.error ? a.error < b.error : a.bits < b.bits;
        return a.bits != b.bits ? a.bits < b.bits : a.error < b.error;
    }

    // The groups that exceed the budget per element with their fewest bits, largest excess first.
    // If all groups together exceed it, at least one does.
    std::string above_budget() const {
        std::vector<std::pair<double, std::string>> above;
        for (const joint_choice& j : choices_) {
            std::uint64_t elements = 0;
            for (const std::size_t t : j.of.tensors) elements += from_.tensors[t].elements;
            const auto least = static_cast<double>(j.least_bits());
            const double beyond = least - *goal_.bits * static_cast<double>(elements);
            if (beyond <= 0) continue;
            above.emplace_back(beyond,
                               fmt::format("'{}' ({:.6g})", base::printable(j.of.name),
                                           rounded_up(least / static_cast<double>(elements))));
        }
        std::ranges::stable_sort(above, std::greater{}, &std::pair<double, std::string>::first);
        std::string words;
        for (std::size_t i = 0; i < std::min(above.size(), groups_named); ++i) {
            words += (i == 0 ? "" : ", ") + above[i].second;
        }
        if (above.size() > groups_named) {
            words += fmt::format(" and {} more", above.size() - groups_named);
        }
        return words;
    }

    // So that the printed figure is sufficient.
    static double rounded_up(double bits) { return std::ceil(bits * 1e5) / 1e5; }

    [[noreturn]] void refuse_budget() const {
        std::uint64_t least = 0, kept = 0;
        for (const joint_choice& j : choices_) {
            least += j.least_bits();
            if (!from_.tensors[j.of.tensors.front()].reason.empty()) kept += j.least_bits();
        }
        const double per_element =
            static_cast<double>(least) / static_cast<double>(from_.elements());
        base::refuse(
            "--bits {}: the recipes to choose from take at least {:.6g} bits "
            "per element ({} bits for {} elements{}); most above the budget: {}",
            *goal_.bits, rounded_up(per_element), least, from_.elements(),
            kept == 0 ? ""
                      : fmt::format(", of them {} bits of tensors without a "
                                    "permitted recipe",
                                    kept),
            above_budget());
    }

    [[noreturn]] void refuse_floor() const {
        double least = 0;
        for (const joint_choice& j : choices_) {
            double here = j.options.front().error;
            for (const plan_option& o : j.options) here = std::min(here, o.error);
            least += here;
        }
        base::refuse(
            "--sqnr {}: the recipes to choose from reach at most {:.2f} dB; give more "
            "recipes, or --keep to leave tensors as they are stored",
            *goal_.sqnr_db, std::floor(decibels(signal_, least).value_or(0) * 100) / 100);
    }

    static constexpr std::size_t groups_named = 3;  // in a message

    const candidates& from_;
    const std::vector<joint_choice> choices_;
    const plan_goal& goal_;
    std::size_t states_;
    error_scale scale_;
    double signal_;
    std::vector<knapsack_class> by_bits_;
    std::uint64_t budget_ = 0;
    double error_limit_ = 0;
};

}  // namespace

plan make_plan(const candidates& from, const plan_goal& goal, std::size_t states) {
    return planner(from, goal, states).run();
}

}  // namespace mx::plan
