// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "libmx/documents/plan.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/command_line.hpp"

namespace mx::documents {
namespace {

using plan::measured_divergences;
using plan::plan_option;
using report::declared;
using report::record;
using report::significant_text;

struct placement {
    const measured_divergences& of;
    const plan::plan_goal& goal;
    const plan::plan& p;

    double bits_of(std::uint64_t bits) const {
        return static_cast<double>(bits) / static_cast<double>(of.from.elements());
    }
    const plan_option& option_of(std::size_t tensor) const {
        return of.from.tensors[tensor].options[p.chosen[tensor]];
    }
    const std::string& recipe_of(std::size_t tensor) const {
        return of.from.recipes[option_of(tensor).recipe].name;
    }
};

report::value from_model(const placement& x, std::string_view name) {
    return report::value_of(x.of.model, name);
}

constexpr std::array placement_head{
    declared<placement>{"model", "string", "",
                        [](const placement& x) { return from_model(x, "model"); }},
    declared<placement>{"text", "string", "where the tokens are from",
                        [](const placement& x) { return from_model(x, "text"); }},
    declared<placement>{"level", "layer|block|kind|tensor", "of the parts that were evaluated",
                        [](const placement& x) { return x.of.level; }},
    declared<placement>{"budget", "amount", "bits an element, over all that is planned",
                        [](const placement& x) { return x.goal.bits; }},
    declared<placement>{"elements", "count", "that are planned",
                        [](const placement& x) { return x.of.from.elements(); }},
    declared<placement>{"bits", "count", "of the plan",
                        [](const placement& x) { return x.p.totals.bits; }},
    declared<placement>{"bits_per_element", "amount", "of the plan",
                        [](const placement& x) { return x.bits_of(x.p.totals.bits); }},
    declared<placement>{"divergence", "amount",
                        "predicted, nats a token: the sum of the places quantized alone",
                        [](const placement& x) { return x.p.totals.error; }},
    declared<placement>{"optimal", "boolean", "no assignment within the budget has a smaller sum",
                        [](const placement& x) { return x.p.optimal; }},
    declared<placement>{"least_divergence", "amount", "no assignment within the budget has less",
                        [](const placement& x) { return x.p.bound; }},
};

struct planned_tensor {
    const placement& in;
    std::size_t tensor;
    const std::string& place;
};
constexpr std::array placement_results{
    declared<planned_tensor>{
        "tensor", "string", "",
        [](const planned_tensor& t) { return t.in.of.from.tensors[t.tensor].of->tensor; }},
    declared<planned_tensor>{"recipe", "string", "a recipe, or stored",
                             [](const planned_tensor& t) { return t.in.recipe_of(t.tensor); }},
    declared<planned_tensor>{
        "elements", "count", "",
        [](const planned_tensor& t) { return t.in.of.from.tensors[t.tensor].elements; }},
    declared<planned_tensor>{"bits", "count", "scales included",
                             [](const planned_tensor& t) { return t.in.option_of(t.tensor).bits; }},
    declared<planned_tensor>{"place", "string", "whose tensors have one recipe",
                             [](const planned_tensor& t) { return t.place; }},
};

struct planned_place {
    const placement& in;
    const plan::plan_group& of;

    std::uint64_t sum(std::uint64_t (*what)(const placement&, std::size_t)) const {
        std::uint64_t all = 0;
        for (const std::size_t t : of.tensors) all += what(in, t);
        return all;
    }
    std::uint64_t bits() const {
        return sum([](const placement& x, std::size_t t) { return x.option_of(t).bits; });
    }
    std::uint64_t elements() const {
        return sum([](const placement& x, std::size_t t) { return x.of.from.tensors[t].elements; });
    }
    double divergence() const {
        double all = 0;
        for (const std::size_t t : of.tensors) all += in.option_of(t).error;
        return all;
    }
};
constexpr std::array placement_place_members{
    declared<planned_place>{"place", "string", "",
                            [](const planned_place& g) { return g.of.name; }},
    declared<planned_place>{
        "recipe", "string", "",
        [](const planned_place& g) { return g.in.recipe_of(g.of.tensors.front()); }},
    declared<planned_place>{"tensors", "count", "",
                            [](const planned_place& g) { return g.of.tensors.size(); }},
    declared<planned_place>{"elements", "count", "",
                            [](const planned_place& g) { return g.elements(); }},
    declared<planned_place>{"bits", "count", "", [](const planned_place& g) { return g.bits(); }},
    declared<planned_place>{"divergence", "amount", "with this place quantized alone",
                            [](const planned_place& g) { return g.divergence(); }},
};

struct whole_recipe {
    const placement& in;
    std::size_t recipe;

    const plan::uniform_plan* uniform() const {
        const auto at = std::ranges::find(in.p.uniform, recipe, &plan::uniform_plan::recipe);
        return at == in.p.uniform.end() ? nullptr : &*at;
    }
};
constexpr std::array whole_members{
    declared<whole_recipe>{
        "recipe", "string", "for all places",
        [](const whole_recipe& w) { return w.in.of.from.recipes[w.recipe].name; }},
    declared<whole_recipe>{"bits_per_element", "amount?", "",
                           [](const whole_recipe& w) -> report::value {
                               const auto* u = w.uniform();
                               return u == nullptr ? report::value()
                                                   : report::value(w.in.bits_of(u->totals.bits));
                           }},
    declared<whole_recipe>{
        "divergence", "number", "the sum of the parts quantized alone",
        [](const whole_recipe& w) { return w.in.of.adds_up.recipes[w.recipe].sum; }},
    declared<whole_recipe>{
        "measured", "number?", "divergence with all of them quantized",
        [](const whole_recipe& w) { return w.in.of.adds_up.recipes[w.recipe].together; }},
    declared<whole_recipe>{"within", "boolean", "it is within the budget",
                           [](const whole_recipe& w) {
                               const auto* u = w.uniform();
                               return u != nullptr && u->within;
                           }},
};

struct mixture {
    const placement& in;
    const plan::plan_totals& totals;
};
constexpr std::array mixture_members{
    declared<mixture>{"bits_per_element", "amount", "",
                      [](const mixture& m) { return m.in.bits_of(m.totals.bits); }},
    declared<mixture>{"divergence", "amount", "predicted",
                      [](const mixture& m) { return m.totals.error; }},
};

struct pair_ratios {
    const plan::additivity& a;
};
constexpr std::array pair_ratio_members{
    declared<pair_ratios>{"pairs", "count", "", [](const pair_ratios& r) { return r.a.pairs; }},
    declared<pair_ratios>{"least", "number", "divergence of both over the sum of each alone",
                          [](const pair_ratios& r) { return r.a.least_ratio; }},
    declared<pair_ratios>{"most", "number", "",
                          [](const pair_ratios& r) { return r.a.most_ratio; }},
};

std::uint32_t most_common_recipe(const placement& x) {
    std::vector<std::uint64_t> elements(x.of.from.recipes.size());
    for (std::size_t t = 0; t < x.of.from.tensors.size(); ++t) {
        elements[x.option_of(t).recipe] += x.of.from.tensors[t].elements;
    }
    return static_cast<std::uint32_t>(std::ranges::max_element(elements) - elements.begin());
}

// The evaluation of the plan itself, on the same tokens.
report::command_line check_of(const placement& x) {
    report::command_line line{"eval", {text_of(x.of.model, "model")}};
    const auto add = [&](std::string name, std::string value) {
        line.options.push_back({std::move(name), std::move(value)});
    };
    const auto number = [&](const char* name) {
        return fmt::format("{}", report::whole(report::number_of(x.of.model, name).value_or(0)));
    };
    const std::string source = text_of(x.of.model, "source");
    const bool sampled = source == "sample";
    add(source, sampled ? number("tokens") : text_of(x.of.model, "text"));
    if (sampled) add("seed", number("seed"));
    add("context", number("context"));
    if (!sampled) add("stride", number("stride"));
    add("precision", text_of(x.of.model, "precision"));
    const std::uint32_t most = most_common_recipe(x);
    const std::vector<plan::plan_group>& groups = x.of.from.groups;
    add("weights", x.of.from.recipes[most].name);
    if (x.of.from.inputs[most] != "none") add("activations", x.of.from.inputs[most]);
    std::string others;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::uint32_t r = x.option_of(groups[g].tensors.front()).recipe;
        if (r == most) continue;
        const bool stored = r + 1 == x.of.from.recipes.size();
        const std::string weights = stored ? "none" : x.of.from.recipes[r].name;
        for (const std::string& layer : x.of.places[g].layers) {
            others += fmt::format("{}{}:w={}", others.empty() ? "" : " ", layer, weights);
            if (x.of.from.inputs[r] != x.of.from.inputs[most]) {
                others += fmt::format(" {}:x={}", layer, x.of.from.inputs[r]);
            }
        }
    }
    if (!others.empty()) add("at", std::move(others));
    return line;
}

report::notes additivity_notes(const placement& x) {
    double least = INFINITY, most = 0;
    for (const plan::additivity::whole& w : x.of.adds_up.recipes) {
        if (!(w.sum > 0) || !std::isfinite(w.together)) continue;
        least = std::min(least, w.together / w.sum);
        most = std::max(most, w.together / w.sum);
    }
    const auto times = [](double a, double b) {
        return fmt::format("{} to {} times", significant_text(a, 3), significant_text(b, 3));
    };
    report::notes notes{report::item(
        "The prediction adds up the divergences of places quantized alone." +
        (least <= most
             ? fmt::format(" All places under one recipe have {} their sum.", times(least, most))
             : std::string()))};
    if (const plan::additivity& a = x.of.adds_up; a.pairs > 0) {
        notes.push_back(
            report::item(fmt::format("{} have {} theirs.", report::plural(a.pairs, "pair"),
                                     times(a.least_ratio, a.most_ratio))));
    }
    return notes;
}

report::notes verdict_of(const placement& x) {
    report::notes notes;
    notes.push_back(fmt::format(
        "Within {} bits per element: {:.4f} bits per element, {} nats of divergence a token "
        "predicted.",
        *x.goal.bits, x.bits_of(x.p.totals.bits), significant_text(x.p.totals.error, 3)));
    notes.push_back(
        x.p.optimal
            ? report::item("No other choice of these recipes has a smaller sum within the budget.")
            : report::item(
                  fmt::format("Not proved optimal: the search was stopped. No choice within the "
                              "budget has a sum below {}.",
                              significant_text(x.p.bound, 3))));
    if (!x.p.best_uniform) {
        notes.push_back(report::item("No single recipe fits the budget."));
    } else {
        const plan::uniform_plan& u = x.p.uniform[*x.p.best_uniform];
        notes.push_back(
            report::item(fmt::format("The best single recipe within the budget is {}: {:.4f} "
                                     "bits, {} nats by the sum.",
                                     x.of.from.recipes[u.recipe].name, x.bits_of(u.totals.bits),
                                     significant_text(u.totals.error, 3))));
    }
    std::ranges::move(additivity_notes(x), std::back_inserter(notes));
    notes.push_back(report::item("To measure the plan itself:"));
    notes.push_back(report::command(check_of(x).text()));
    return notes;
}

}  // namespace

report::document placement_document(const measured_divergences& measured,
                                    const plan::plan_goal& goal, const plan::plan& p) {
    const placement x{measured, goal, p};
    report::document d;
    d.head = pages::document_head("mx.placement/1");
    report::append(d.head, placement_head, x);
    report::list places, uniform, curve;
    for (const plan::plan_group& g : measured.from.groups) {
        for (const std::size_t t : g.tensors) {
            d.results.push_back(report::written(placement_results, planned_tensor{x, t, g.name}));
        }
        places.emplace_back(report::written(placement_place_members, planned_place{x, g}));
    }
    for (std::size_t r = 0; r < measured.adds_up.recipes.size(); ++r) {
        uniform.emplace_back(report::written(whole_members, whole_recipe{x, r}));
    }
    for (const plan::plan_totals& t : p.curve) {
        curve.emplace_back(report::written(mixture_members, mixture{x, t}));
    }
    d.tail.emplace_back("places", std::move(places));
    d.tail.emplace_back("uniform", std::move(uniform));
    d.tail.emplace_back("curve", std::move(curve));
    d.tail.emplace_back("pairs",
                        report::written(pair_ratio_members, pair_ratios{measured.adds_up}));
    d.tail.emplace_back("check", check_of(x).text());
    d.tail.emplace_back("mapping", plan::mapping_of(measured.from, p));
    pages::finish_document(d, verdict_of(x));
    return d;
}

report::document_schema placement_schema() {
    report::document_schema s("mx.placement/1", "mx plan --by divergence",
                              "A recipe for every place of a language model, with the least sum "
                              "of measured divergences within a budget.");
    return s.members(placement_head)
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .member({"results", "[#result]", "a tensor each"})
        .member({"places", "[#place]", "a choice each"})
        .member({"uniform", "[#whole]", "one recipe for all places"})
        .member({"curve", "[#mixture]", "the least divergence by bits, on the lower convex hull"})
        .member({"pairs", "#pairs", "parts that were quantized together"})
        .member({"check", "string", "the command that evaluates the plan"})
        .member({"mapping", "@plan-1#mapping", "the plan in the words of other tools"})
        .define("result", placement_results)
        .define("place", placement_place_members)
        .define("whole", whole_members)
        .define("mixture", mixture_members)
        .define("pairs", pair_ratio_members);
}

}  // namespace mx::documents
