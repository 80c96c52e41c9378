// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/base/joined.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/members.hpp"

namespace mx::experiments {
namespace {

using report::record;

report::value optional_real(const std::optional<double>& x) {
    return x ? report::finite_or_null(*x) : report::value();
}

template <auto Field, typename T>
report::value part_of(const std::optional<T>& x) {
    return x ? report::finite_or_null((*x).*Field) : report::value();
}

constexpr auto mean = part_of<&paired_gap::mean, paired_gap>;
constexpr auto low = part_of<&paired_gap::low, paired_gap>;
constexpr auto high = part_of<&paired_gap::high, paired_gap>;
constexpr auto least = part_of<&interval::low, interval>;
constexpr auto most = part_of<&interval::high, interval>;

constexpr std::array finding_members = std::to_array<report::declared<finding>>({
    {"group", "string", "of configurations with one baseline and subject",
     [](auto& f) { return f.of.group; }},
    {"configuration", "string", "baseline: what the others of the group are compared with",
     [](auto& f) { return f.of.name; }},
    {"settings", "string", "of the precision, as mx train --at takes them",
     [](auto& f) { return f.of.settings; }},
    {"from_step", "count", "steps of the baseline before the settings hold",
     [](auto& f) { return f.from_step; }},
    {"source", "string", "figure or table that asks; may be empty",
     [](auto& f) { return f.of.source; }},
    {"runs", "count", "seeds", [](auto& f) { return f.runs; }},
    {"unstable", "count",
     "unstable runs: by jumps under the proxy's task of the paper, else by a sustained excess",
     [](auto& f) { return f.unstable; }},
    {"high_ends", "count",
     "runs whose last tenth lies more than 10 % above the least mean of a tenth",
     [](auto& f) { return f.high_ends; }},
    {"loss", "number?", "mean of the stable runs over the last steps",
     [](auto& f) { return optional_real(f.loss); }},
    {"pairs", "count", "seeds that the gap is the mean of; 0: no gap",
     [](auto& f) { return f.gap ? f.gap->pairs : 0; }},
    {"gap", "number?",
     "loss less the baseline's, paired by seed, stable pairs only; null for fewer than two",
     [](auto& f) { return mean(f.gap); }},
    {"gap_low", "number?", "of the 95 % interval", [](auto& f) { return low(f.gap); }},
    {"gap_high", "number?", "", [](auto& f) { return high(f.gap); }},
    {"gap_share", "number?", "of the baseline's loss",
     [](auto& f) { return optional_real(f.gap_share); }},
    {"targets", "count?",
     "measure steps: seeds whose baseline is stable, so that its loss is a target",
     [](auto& f) { return report::only_if(f.reached.has_value(), f.targets); }},
    {"reached", "count?", "measure steps: runs of these seeds that come to the loss",
     [](auto& f) { return report::only_if(f.reached.has_value(), f.reached.value_or(0)); }},
    {"extra", "number?",
     "measure steps: steps to the fixed loss over the baseline's, less 1; null where a run does "
     "not come there",
     [](auto& f) { return mean(f.extra); }},
    {"extra_low", "number?", "of the 95 % interval", [](auto& f) { return low(f.extra); }},
    {"extra_high", "number?", "", [](auto& f) { return high(f.extra); }},
    {"significant", "boolean?", "whether adjusted_p is below 0.05; null without a gap",
     [](auto& f) { return f.gap ? report::value(f.significant()) : report::value(); }},
    {"adjusted_p", "number?",
     "of the t test of extra, or else of gap, adjusted by Holm's method for the configurations",
     [](auto& f) { return optional_real(f.adjusted_p); }},
    {"published", "number?", "what the paper has in place of gap, or extra",
     [](auto& f) { return optional_real(f.of.published); }},
    {"published_words", "string", "as the paper says it; may be empty",
     [](auto& f) { return f.of.published_words; }},
    {"error", "amount?",
     "R-MSE / RMS of the operand whose recipe varies, mean over layers and seeds, on the "
     "baseline's last step; null where none is measured",
     [](auto& f) { return part_of<&operand_error::rmse_over_rms>(f.error); }},
    {"error_over_amax", "amount?", "R-MSE / largest magnitude, likewise",
     [](auto& f) { return part_of<&operand_error::rmse_over_amax>(f.error); }},
    {"error_all", "amount?", "R-MSE / RMS over all elements of all layers, mean over seeds",
     [](auto& f) { return part_of<&operand_error::rmse_over_rms_all>(f.error); }},
    {"gain", "number?", "q.x / x.x, likewise",
     [](auto& f) { return part_of<&operand_error::gain>(f.error); }},
    {"stochastic", "boolean", "whether the varied recipe rounds stochastically",
     [](auto& f) { return f.drawn(); }},
});

constexpr std::array correlation_members = std::to_array<report::declared<correlation>>({
    {"group", "string", "", [](auto& c) { return c.group; }},
    {"over", "formats|deterministic|all",
     "formats: each under its preset's rules; deterministic: all but stochastic rounding",
     [](auto& c) { return c.over; }},
    {"recipes", "count", "", [](auto& c) { return c.recipes; }},
    {"spearman", "number?", "of error and gap over recipes",
     [](auto& c) { return optional_real(c.spearman); }},
    {"spearman_low", "number?", "of the bootstrap's 95 % interval over recipes",
     [](auto& c) { return least(c.spearman_interval); }},
    {"spearman_high", "number?", "", [](auto& c) { return most(c.spearman_interval); }},
    {"power", "number?", "p of gap = c error^p, over positive gaps",
     [](auto& c) { return optional_real(c.power); }},
    {"power_low", "number?", "", [](auto& c) { return least(c.power_interval); }},
    {"power_high", "number?", "", [](auto& c) { return most(c.power_interval); }},
});

constexpr std::array pair_members = std::to_array<report::declared<pairing>>({
    {"group", "string", "", [](auto& p) { return p.group; }},
    {"configuration", "string", "", [](auto& p) { return p.name; }},
    {"other", "string", "configuration of the group that it is set beside",
     [](auto& p) { return p.other; }},
    {"error_ratio", "amount?", "R-MSE over the other's; null where none is measured",
     [](auto& p) { return optional_real(p.error_ratio); }},
    {"gain", "number?", "", [](auto& p) { return optional_real(p.gain); }},
    {"other_gain", "number?", "", [](auto& p) { return optional_real(p.other_gain); }},
    {"gap", "number?", "loss less the other's, paired by seed",
     [](auto& p) { return mean(p.gap); }},
    {"gap_low", "number?", "of the 95 % interval", [](auto& p) { return low(p.gap); }},
    {"gap_high", "number?", "", [](auto& p) { return high(p.gap); }},
    {"adjusted_p", "number?",
     "of the gap's t test, adjusted for the twins; null in pairs that were searched for",
     [](auto& p) { return optional_real(p.adjusted_p); }},
    {"significant", "boolean",
     "whether adjusted_p, or without one the p-value of the gap alone, is below 0.05",
     [](auto& p) { return p.significant(); }},
});

std::string interval_text(const std::optional<interval>& i) {
    return i ? fmt::format(" (95 %: {:.2f} to {:.2f})", i->low, i->high) : "";
}

// Nats per token of text that is made here, below which no model's expected loss lies.
std::optional<double> floor_of(const lab::run_request& r) {
    if (r.model == lab::model_kind::proxy || !r.text_file.empty()) return std::nullopt;
    return lab::made_text()->floor(r.context);
}

// Half the width of the middle one of the intervals of what the study measures.
std::optional<double> usual_width(const findings& f, yardstick measure) {
    std::vector<double> widths;
    for (const finding& one : f.all) {
        const auto& g = measure == yardstick::steps ? one.extra : one.gap;
        if (g) widths.push_back((g->high - g->low) / 2);
    }
    if (widths.empty()) return std::nullopt;
    std::ranges::sort(widths);
    return widths[widths.size() / 2];
}

void describe_correlations(const findings& f, std::vector<std::string>& to) {
    for (const correlation& c : f.correlations) {
        if (!c.spearman) continue;
        std::string text = fmt::format("{}, over {} ({}): Spearman {:.2f}{}", c.group,
                                       c.over == "all"       ? "all recipes"
                                       : c.over == "formats" ? "formats"
                                                             : "recipes without draws",
                                       c.recipes, *c.spearman, interval_text(c.spearman_interval));
        if (c.power) {
            text += fmt::format("; gap as the error to the power {:.2f}{}", *c.power,
                                interval_text(c.power_interval));
        }
        to.push_back(std::move(text));
    }
    if (f.correlations.empty()) return;
    // The same format in every kind of operand.
    constexpr const char* example = "E2M1";
    std::vector<std::string> costs;
    for (const finding& one : f.all) {
        if (one.of.name != example || !one.error || !one.gap) continue;
        costs.push_back(fmt::format("{} {:.3f} and {:.3g}", one.of.group, one.error->rmse_over_rms,
                                    one.gap->mean));
    }
    to.push_back(
        fmt::format("R-MSE does not show the effect of the operand: R-MSE / RMS and gap of {}: {}",
                    example, base::joined(costs, "; ")));
    for (const pairing& p : f.inversions) {
        to.push_back(fmt::format(
            "an exception to R-MSE: {}, {} has {:.2f} times the error of {} and a loss smaller by "
            "{:.3g} (95 %: {:.3g} to {:.3g})",
            p.group, p.name, *p.error_ratio, p.other, -p.gap->mean, -p.gap->high, -p.gap->low));
    }
    to.push_back(fmt::format(
        "{} pairs of recipes were searched for a larger error with a smaller loss; one in forty "
        "equal pairs shows it by chance",
        f.pairs));
    std::size_t drawn = 0, better = 0, worse = 0;
    for (const pairing& p : f.twins) {
        if (p.group != "gradients" || !p.drawn) continue;
        ++drawn;
        if (!p.significant()) continue;
        (p.gap->mean < 0 ? better : worse) += 1;
    }
    to.push_back(fmt::format(
        "stochastic rounding of gradients, which increases R-MSE: {} of {} recipes have a smaller "
        "final loss than with rounding to nearest, {} a larger one, the others no significant "
        "difference{}",
        better, drawn, worse,
        better == 0 ? "; the advantage that Yang et al. see in a language model does not appear "
                      "at this size"
                    : ""));
}

// Of studies that set configurations side by side: those that differ.
void describe_twins(const findings& f, std::vector<std::string>& to) {
    if (!f.correlations.empty()) return;
    for (const pairing& p : f.twins) {
        if (!p.significant()) continue;
        to.push_back(fmt::format("{}: {} ends {:.3g} {} than {} (95 %: {:.3g} to {:.3g})", p.group,
                                 p.name, std::abs(p.gap->mean),
                                 p.gap->mean < 0 ? "lower" : "higher", p.other, p.gap->low,
                                 p.gap->high));
    }
}

void describe_gaps(const study_plan& plan, const findings& f, std::vector<std::string>& to) {
    const bool steps = plan.of->measure == yardstick::steps;
    std::vector<std::string> null;
    std::size_t count = 0, broken = 0, ended_high = 0;
    for (const finding& one : f.all) {
        if (one.is_baseline) continue;
        ++count;
        broken += one.unstable > 0 ? 1u : 0u;
        ended_high += one.high_ends > 0 ? 1u : 0u;
        if (one.reached && *one.reached < one.targets) {
            to.push_back(fmt::format("{}, {}: {} of {} runs reach the loss within the steps",
                                     one.of.group, one.of.name, *one.reached, one.targets));
        } else if (one.gap && !one.significant()) {
            if (null.empty() || !null.back().starts_with(one.of.group + ": ")) {
                null.push_back(one.of.group + ": " + one.of.name);
            } else {
                null.back() += ", " + one.of.name;
            }
        }
    }
    to.push_back(fmt::format(
        "{} of {} configurations have unstable runs, {} have runs that end above their least loss",
        broken, count, ended_high));
    const auto width = usual_width(f, plan.of->measure);
    const std::string what = steps ? "extra steps" : "loss";
    if (width) {
        const double detected = *width * detectable_gap(plan.seeds.size());
        to.push_back(fmt::format(
            "{} seeds detect a difference in {} of about {} with 80 % power (one comparison; "
            "simulated, from the median interval); they show nothing about smaller ones, or "
            "larger networks",
            plan.seeds.size(), what,
            steps ? fmt::format("{:.2g} %", 100 * detected) : fmt::format("{:.2g}", detected)));
    }
    if (!null.empty()) {
        to.push_back(
            fmt::format("not significantly different from the baseline (Holm's method), which does "
                        "not prove equality: {}",
                        base::joined(null, "; ")));
    }
    if (f.agreement) {
        to.push_back(fmt::format(
            "in the order of the published figures: Spearman {:.2f} over the configurations that "
            "have one",
            *f.agreement));
    }
}

report::value request_of(const study_plan& plan) {
    record request;
    for (const auto& [key, value] : lab::to_text(plan.request)) {
        if (key != "seed" && key != "precision") request.emplace_back(key, value);
    }
    return request;
}

struct study_head {
    const study_plan& plan;
    std::optional<double> budget;
    const std::string& command;
    const findings& found;
};

constexpr std::array head_members = std::to_array<report::declared<study_head>>({
    {"study", "correlation|recipes|hybrid|stages", "", [](auto& h) { return h.plan.of->name; }},
    {"title", "string", "", [](auto& h) { return h.plan.of->title; }},
    {"paper", "string", "", [](auto& h) { return h.plan.of->paper; }},
    {"on", "proxy|olmo|llama", "the model that was trained",
     [](auto& h) { return lab::name_of(h.plan.request.model); }},
    {"loss_of", "training|held_out",
     "what loss and gap are of: batches of training, or bytes of --text that are held out",
     [](const study_head& h) {
         return h.plan.request.text_file.empty() ? "training" : "held_out";
     }},
    {"loss_floor", "number?",
     "nats per byte below which no model's expected loss lies; null where unknown",
     [](auto& h) { return optional_real(floor_of(h.plan.request)); }},
    {"budget_seconds", "amount?", "that seeds follow from; null where --seeds says them",
     [](auto& h) { return optional_real(h.budget); }},
    {"command", "string", "repeats the study bit for bit", [](auto& h) { return h.command; }},
    {"request", "{string}", "of every run, but for seed and precision: options of mx train",
     [](auto& h) { return request_of(h.plan); }},
    {"seeds", "[count]", "", [](auto& h) { return report::value(report::to_list(h.plan.seeds)); }},
    {"runs", "count", "training runs in all", [](auto& h) { return h.found.trained; }},
    {"measure", "gap|steps", "what configurations are measured by",
     [](auto& h) { return h.plan.of->measure == yardstick::gap ? "gap" : "steps"; }},
    {"published", "string", "what the published figures are; may be empty",
     [](auto& h) { return h.plan.of->published; }},
    {"late_share", "share",
     "last share of the steps that a loss is the mean over; at most half of the steps that a "
     "configuration has to itself",
     [](auto&) { return late_share; }},
    {"target_share", "share",
     "measure steps: the fixed loss is the baseline's after this share of the steps",
     [](auto&) { return target_share; }},
    {"window_share", "share", "measure steps: losses are means over this share of the steps",
     [](auto&) { return window_share; }},
});

report::value pairs_of(const std::vector<pairing>& all) {
    return report::to_list(all, [](auto& p) { return report::written(pair_members, p); });
}

constexpr std::array tail_members = std::to_array<report::declared<findings>>({
    // The first correlation is of weights over formats, which is what the figure of Yang et al.
    // shows.
    {"spearman", "number?", "of the first of correlations: of weights over formats",
     [](const findings& f) {
         return f.correlations.empty() ? report::value()
                                       : optional_real(f.correlations.front().spearman);
     }},
    {"correlations", "[#correlation]", "of error and gap; empty where no errors are measured",
     [](const findings& f) {
         return report::value(report::to_list(f.correlations, [](const correlation& c) {
             return report::written(correlation_members, c);
         }));
     }},
    {"twins", "[#pair]", "configurations beside the one of their group that differs in one thing",
     [](auto& f) { return pairs_of(f.twins); }},
    {"inversions", "[#pair]",
     "recipes with an error at least 5 % larger than another's and a significantly smaller loss; "
     "the clearest ten of each group",
     [](auto& f) { return pairs_of(f.inversions); }},
    {"pairs", "count",
     "pairs searched for inversions; one in forty pairs of equal recipes is an inversion by chance",
     [](auto& f) { return f.pairs; }},
    {"agreement", "number?", "Spearman of gap, or extra, with what is published",
     [](auto& f) { return optional_real(f.agreement); }},
});

}  // namespace

std::vector<report::given_option> options_of(const lab::run_request& r,
                                             const std::vector<std::uint64_t>& seeds) {
    // What the budget chooses is always said; else what differs from what the model begins with.
    constexpr std::array<std::string_view, 8> sizes{"width", "depth",   "batch", "steps",
                                                    "lr",    "context", "heads", "task"};
    const bool proxy = r.model == lab::model_kind::proxy;
    lab::run_request plain = lab::request_for(std::string(lab::name_of(r.model)), "");
    plain.steps = r.steps;
    plain.rate = r.rate;
    lab::fit_schedule(plain);
    std::vector<report::given_option> options;
    for (const lab::request_key& key : lab::request_keys()) {
        if (!(proxy ? key.proxy : key.language)) continue;
        const bool size = std::ranges::find(sizes, key.name) != sizes.end();
        const std::string value = key.get(r);
        if (key.name == "seed" || (!size && value == key.get(plain))) continue;
        options.push_back({std::string(key.name), value});
    }
    std::string text;
    for (std::size_t i = 0; i < seeds.size();) {
        std::size_t last = i;
        while (last + 1 < seeds.size() && seeds[last + 1] == seeds[last] + 1) ++last;
        text += fmt::format("{}{}", i == 0 ? "" : ",", seeds[i]);
        if (last > i) text += fmt::format("..{}", seeds[last]);
        i = last + 1;
    }
    options.push_back({"seeds", text});
    return options;
}

record head_of(const study_plan& plan, std::optional<double> budget, const std::string& command,
               const findings& f) {
    return report::written(head_members, {plan, budget, command, f});
}

std::vector<record> results_of(const study_plan&, const findings& f) {
    std::vector<record> rows;
    for (const finding& one : f.all) rows.push_back(report::written(finding_members, one));
    return rows;
}

record tail_of(const findings& f) { return report::written(tail_members, f); }

report::document_schema study_schema() {
    return report::document_schema("mx.study/1", "mx study",
                                   "Configurations of a training beside their baselines.")
        .members(head_members)
        .member({"results", "[#finding]", "a configuration each, the baseline of a group first"})
        .members(tail_members)
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .define("finding", finding_members)
        .define("correlation", correlation_members)
        .define("pair", pair_members);
}

std::vector<std::string> sentences_of(const study_plan& plan, const findings& f) {
    std::vector<std::string> all;
    describe_correlations(f, all);
    describe_twins(f, all);
    describe_gaps(plan, f, all);
    return all;
}

}  // namespace mx::experiments
