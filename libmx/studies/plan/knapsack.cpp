// SPDX-License-Identifier: Apache-2.0
// The linear relaxation, which may mix neighbouring choices, gives a price of weight. At that price
// every class has a best choice, and the loss of any other choice against it is an exact integer. A
// choice that loses more than the gap between the relaxation and the best known selection cannot be
// part of a better one, which leaves few classes to search: dynamic programming over those, with
// the same bound, beginning with the classes whose choices differ least.
#include "libmx/studies/plan/knapsack.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace mx::plan {
namespace {

// For products of two totals.
__extension__ using wide = __int128;

constexpr std::uint64_t total_limit = std::uint64_t{1} << 61;

// A choice not dominated by another one of its class. cost and weight are relative to the cheapest
// and to the lightest choice of the class, in units of the greatest common divisors.
struct option {
    std::int64_t cost = 0;
    std::int64_t weight = 0;
    std::uint32_t index = 0;
};

// Classes with their undominated choices, in order of increasing weight and decreasing cost.
struct problem {
    std::vector<std::vector<option>> classes;
    std::uint64_t least_cost = 0;    // of the cheapest choices
    std::uint64_t least_weight = 0;  // of the lightest choices
    std::uint64_t cost_unit = 1;
    std::uint64_t weight_unit = 1;

    std::uint64_t cost_of(std::int64_t units) const {
        return least_cost + static_cast<std::uint64_t>(units) * cost_unit;
    }
    std::uint64_t weight_of(std::int64_t units) const {
        return least_weight + static_cast<std::uint64_t>(units) * weight_unit;
    }
};

void check_totals(const std::vector<knapsack_class>& classes) {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
    for (const knapsack_class& c : classes) {
        if (c.empty()) throw std::invalid_argument("a class without a choice");
        std::uint64_t most_cost = 0;
        std::uint64_t most_weight = 0;
        for (const knapsack_choice& x : c) {
            most_cost = std::max(most_cost, x.cost);
            most_weight = std::max(most_weight, x.weight);
        }
        if (most_cost > total_limit - cost || most_weight > total_limit - weight) {
            throw std::invalid_argument("totals of a knapsack beyond 2^61");
        }
        cost += most_cost;
        weight += most_weight;
    }
}

problem reduced(const std::vector<knapsack_class>& classes) {
    check_totals(classes);
    problem p;
    std::uint64_t cost_unit = 0;
    std::uint64_t weight_unit = 0;
    std::vector<std::vector<std::uint32_t>> kept;
    for (const knapsack_class& c : classes) {
        std::vector<std::uint32_t> order(c.size());
        std::iota(order.begin(), order.end(), 0U);
        std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
            if (c[a].weight != c[b].weight) return c[a].weight < c[b].weight;
            if (c[a].cost != c[b].cost) return c[a].cost < c[b].cost;
            return a < b;
        });
        std::vector<std::uint32_t> best;
        for (const std::uint32_t i : order) {
            if (best.empty() || c[i].cost < c[best.back()].cost) best.push_back(i);
        }
        const knapsack_choice& lightest = c[best.front()];
        const knapsack_choice& cheapest = c[best.back()];
        p.least_weight += lightest.weight;
        p.least_cost += cheapest.cost;
        for (const std::uint32_t i : best) {
            cost_unit = std::gcd(cost_unit, c[i].cost - cheapest.cost);
            weight_unit = std::gcd(weight_unit, c[i].weight - lightest.weight);
        }
        kept.push_back(std::move(best));
    }
    p.cost_unit = std::max<std::uint64_t>(cost_unit, 1);
    p.weight_unit = std::max<std::uint64_t>(weight_unit, 1);
    for (std::size_t k = 0; k < classes.size(); ++k) {
        const knapsack_class& c = classes[k];
        std::vector<option> options;
        for (const std::uint32_t i : kept[k]) {
            const std::uint64_t cost = (c[i].cost - c[kept[k].back()].cost) / p.cost_unit;
            const std::uint64_t weight = (c[i].weight - c[kept[k].front()].weight) / p.weight_unit;
            options.push_back(
                {static_cast<std::int64_t>(cost), static_cast<std::int64_t>(weight), i});
        }
        p.classes.push_back(std::move(options));
    }
    return p;
}

// From one corner of a class's hull to the next: saves `saved` cost for `added` weight.
struct step {
    std::int64_t saved = 0;
    std::int64_t added = 0;
    std::uint32_t of = 0;  // class
    std::uint32_t to = 0;  // its option
};

bool better(const step& a, const step& b) {
    const wide left = wide{a.saved} * b.added;
    const wide right = wide{b.saved} * a.added;
    if (left != right) return left > right;
    return a.of != b.of ? a.of < b.of : a.to < b.to;
}

// The steps of all hulls in decreasing order of cost saved per weight, which within a class is
// their order along the hull.
std::vector<step> hull_steps(const problem& p) {
    std::vector<step> steps;
    std::vector<std::uint32_t> corners;
    for (std::uint32_t k = 0; k < p.classes.size(); ++k) {
        const std::vector<option>& c = p.classes[k];
        const auto between = [&](std::uint32_t a, std::uint32_t b) {
            return step{c[a].cost - c[b].cost, c[b].weight - c[a].weight, 0, 0};
        };
        corners.clear();
        for (std::uint32_t i = 0; i < c.size(); ++i) {
            while (corners.size() >= 2) {
                const step before = between(corners[corners.size() - 2], corners.back());
                const step after = between(corners.back(), i);
                // A corner on or above the line through its neighbours is not part of the hull.
                if (wide{before.saved} * after.added > wide{after.saved} * before.added) break;
                corners.pop_back();
            }
            corners.push_back(i);
        }
        for (std::size_t i = 1; i < corners.size(); ++i) {
            step s = between(corners[i - 1], corners[i]);
            s.of = k;
            s.to = corners[i];
            steps.push_back(s);
        }
    }
    std::ranges::sort(steps, better);
    return steps;
}

struct totals_so_far {
    std::int64_t cost = 0;
    std::int64_t weight = 0;
    bool before(const totals_so_far& o) const {
        return cost != o.cost ? cost < o.cost : weight < o.weight;
    }
};

class search {
  public:
    search(const problem& p, std::int64_t capacity, bool cost_only, std::size_t states)
        : p_(p), capacity_(capacity), cost_only_(cost_only), states_(states) {}

    knapsack_selection run() {
        const std::vector<step> steps = hull_steps(p_);
        std::vector<std::uint32_t> at(p_.classes.size(), 0);
        std::size_t taken = 0;
        std::int64_t weight = 0;
        for (; taken < steps.size() && weight + steps[taken].added <= capacity_; ++taken) {
            weight += steps[taken].added;
            at[steps[taken].of] = steps[taken].to;
        }
        if (taken == steps.size()) {  // the cheapest choices fit
            offer(at);
            return finished(0, true);
        }
        price_cost_ = steps[taken].saved;
        price_weight_ = steps[taken].added;
        fill(at, steps, taken);
        choose_bases();
        return explore();
    }

  private:
    // A choice's cost with its weight converted at the price.
    wide priced(std::int64_t cost, std::int64_t weight) const {
        return wide{price_weight_} * cost + wide{price_cost_} * weight;
    }
    // A lower bound, times price_weight_, on every selection with these totals for some classes;
    // the other classes are at their best choice at the price.
    wide floor_of(const totals_so_far& t) const {
        return priced(t.cost, t.weight) - wide{price_cost_} * capacity_;
    }
    // Whether this lower bound excludes a better selection than the best known. If it equals the
    // known cost, selections of that cost have the full weight of the capacity, so none is lighter.
    bool hopeless(wide floor) const {
        const std::int64_t beat = cost_only_ ? best_.cost - 1 : best_.cost;
        return cost_only_ ? floor > wide{price_weight_} * beat
                          : floor >= wide{price_weight_} * beat;
    }

    totals_so_far totals_of(const std::vector<std::uint32_t>& at) const {
        totals_so_far t;
        for (std::size_t k = 0; k < at.size(); ++k) {
            t.cost += p_.classes[k][at[k]].cost;
            t.weight += p_.classes[k][at[k]].weight;
        }
        return t;
    }

    void offer(const std::vector<std::uint32_t>& at) {
        const totals_so_far t = totals_of(at);
        if (!chosen_.empty() && !t.before(best_)) return;
        best_ = t;
        chosen_ = at;
    }

    // An initial selection: the steps that still fit, then single switches that fit.
    void fill(std::vector<std::uint32_t> at, const std::vector<step>& steps, std::size_t from) {
        totals_so_far t = totals_of(at);
        std::vector<bool> blocked(at.size(), false);
        for (std::size_t i = from; i < steps.size(); ++i) {
            const step& s = steps[i];
            blocked[s.of] = blocked[s.of] || t.weight + s.added > capacity_;
            if (blocked[s.of]) continue;
            t.weight += s.added;
            at[s.of] = s.to;
        }
        for (std::size_t k = 0; k < at.size(); ++k) {
            const std::vector<option>& c = p_.classes[k];
            const std::int64_t without = t.weight - c[at[k]].weight;
            while (at[k] + 1 < c.size() && without + c[at[k] + 1].weight <= capacity_) ++at[k];
            t.weight = without + c[at[k]].weight;
        }
        offer(at);
    }

    // For each class the best choice at the price; the lightest of equal ones.
    void choose_bases() {
        bases_.resize(p_.classes.size());
        for (std::size_t k = 0; k < bases_.size(); ++k) {
            const std::vector<option>& c = p_.classes[k];
            for (std::uint32_t i = 1; i < c.size(); ++i) {
                const option& now = c[bases_[k]];
                if (priced(c[i].cost, c[i].weight) < priced(now.cost, now.weight)) bases_[k] = i;
            }
        }
        offer(bases_);  // lighter than the capacity: only the steps before the one that did not fit
    }

    // A class that may differ from its base, with the least loss if it does.
    struct open_class {
        std::size_t of;
        wide loss;
    };

    std::vector<open_class> open_classes() const {
        std::vector<open_class> open;
        for (std::size_t k = 0; k < bases_.size(); ++k) {
            const std::vector<option>& c = p_.classes[k];
            const wide base = priced(c[bases_[k]].cost, c[bases_[k]].weight);
            bool any = false;
            wide loss = 0;
            for (std::uint32_t i = 0; i < c.size(); ++i) {
                if (i == bases_[k]) continue;
                const wide here = priced(c[i].cost, c[i].weight) - base;
                if (!any || here < loss) loss = here;
                any = true;
            }
            if (any) open.push_back({k, loss});
        }
        std::ranges::stable_sort(open, {}, &open_class::loss);
        return open;
    }

    // A partial selection: the chosen options of the classes so far, the bases of the others.
    struct state {
        totals_so_far t;
        std::uint32_t parent;
        std::uint32_t option;
    };
    struct link {
        std::uint32_t parent;
        std::uint32_t option;
    };

    knapsack_selection explore() {
        const std::vector<open_class> open = open_classes();
        const totals_so_far start = totals_of(bases_);
        const wide floor = floor_of(start);
        std::vector<state> states{{start, 0, 0}};
        std::vector<state> next;
        std::vector<std::vector<link>> layers;
        std::vector<std::size_t> seen;  // class of each layer
        std::size_t remembered = 0;
        for (const open_class& c : open) {
            if (hopeless(floor + c.loss)) break;  // also true of all that follow
            const std::vector<option>& options = p_.classes[c.of];
            const option& base = options[bases_[c.of]];
            next.clear();
            state found{best_, 0, 0};
            bool improved = false;
            for (std::uint32_t i = 0; i < states.size(); ++i) {
                for (std::uint32_t o = 0; o < options.size(); ++o) {
                    const totals_so_far t{states[i].t.cost + options[o].cost - base.cost,
                                          states[i].t.weight + options[o].weight - base.weight};
                    if (hopeless(floor_of(t))) continue;
                    next.push_back({t, i, o});
                    if (t.weight <= capacity_ && t.before(found.t)) {
                        found = next.back();
                        improved = true;
                    }
                }
            }
            if (improved) {
                best_ = found.t;
                trace(found, layers, seen, c.of);
            }
            keep_undominated(next);
            remembered += next.size();
            states.swap(next);
            layers.emplace_back();
            layers.back().reserve(states.size());
            for (const state& s : states) layers.back().push_back({s.parent, s.option});
            seen.push_back(c.of);
            if (states.empty()) break;
            if (remembered > states_) return unproved(states);
        }
        return finished(best_.cost, true);
    }

    // Orders states by increasing weight and keeps those with decreasing cost that pass the bound.
    void keep_undominated(std::vector<state>& all) const {
        std::ranges::sort(all, [](const state& a, const state& b) {
            if (a.t.weight != b.t.weight) return a.t.weight < b.t.weight;
            if (a.t.cost != b.t.cost) return a.t.cost < b.t.cost;
            return a.parent != b.parent ? a.parent < b.parent : a.option < b.option;
        });
        std::size_t kept = 0;
        for (const state& s : all) {
            if (kept > 0 && all[kept - 1].t.cost <= s.t.cost) continue;
            if (!hopeless(floor_of(s.t))) all[kept++] = s;
        }
        all.resize(kept);
    }

    // The selection of a state of class `of`, which comes after the layers.
    void trace(const state& s, const std::vector<std::vector<link>>& layers,
               const std::vector<std::size_t>& seen, std::size_t of) {
        chosen_ = bases_;
        chosen_[of] = s.option;
        std::uint32_t at = s.parent;
        for (std::size_t k = layers.size(); k-- > 0;) {
            chosen_[seen[k]] = layers[k][at].option;
            at = layers[k][at].parent;
        }
    }

    knapsack_selection unproved(const std::vector<state>& states) const {
        wide least = wide{price_weight_} * best_.cost;
        for (const state& s : states) least = std::min(least, floor_of(s.t));
        // Costs are integers, so the bound may be rounded up.
        const wide bound = (std::max<wide>(least, 0) + price_weight_ - 1) / price_weight_;
        return finished(static_cast<std::int64_t>(std::min(bound, wide{best_.cost})),
                        bound >= best_.cost);
    }

    knapsack_selection finished(std::int64_t bound, bool proved) const {
        knapsack_selection s;
        for (std::size_t k = 0; k < chosen_.size(); ++k) {
            s.chosen.push_back(p_.classes[k][chosen_[k]].index);
        }
        s.cost = p_.cost_of(best_.cost);
        s.weight = p_.weight_of(best_.weight);
        s.optimal = proved;
        s.bound = proved ? s.cost : p_.cost_of(bound);
        return s;
    }

    const problem& p_;
    std::int64_t capacity_;
    bool cost_only_;
    std::size_t states_;
    std::int64_t price_cost_ = 0;  // the price of weight is price_cost_ / price_weight_
    std::int64_t price_weight_ = 1;
    std::vector<std::uint32_t> bases_;
    totals_so_far best_;
    std::vector<std::uint32_t> chosen_;
};

std::optional<knapsack_selection> solved(const std::vector<knapsack_class>& classes,
                                         std::uint64_t capacity, bool cost_only,
                                         std::size_t states) {
    const problem p = reduced(classes);
    if (p.least_weight > capacity) return std::nullopt;
    const std::uint64_t room = std::min(capacity - p.least_weight, total_limit) / p.weight_unit;
    return search(p, static_cast<std::int64_t>(room), cost_only, states).run();
}

}  // namespace

std::optional<knapsack_selection> solve_knapsack(const std::vector<knapsack_class>& classes,
                                                 std::uint64_t capacity, std::size_t states) {
    return solved(classes, capacity, false, states);
}

std::optional<knapsack_selection> least_cost(const std::vector<knapsack_class>& classes,
                                             std::uint64_t capacity, std::size_t states) {
    return solved(classes, capacity, true, states);
}

std::vector<knapsack_point> knapsack_hull(const std::vector<knapsack_class>& classes) {
    const problem p = reduced(classes);
    totals_so_far t;
    for (const std::vector<option>& c : p.classes) t.cost += c.front().cost;
    std::vector<knapsack_point> points{{p.cost_of(t.cost), p.weight_of(t.weight)}};
    for (const step& s : hull_steps(p)) {
        t.cost -= s.saved;
        t.weight += s.added;
        points.push_back({p.cost_of(t.cost), p.weight_of(t.weight)});
    }
    return points;
}

}  // namespace mx::plan
