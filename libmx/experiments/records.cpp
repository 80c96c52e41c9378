// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/base/joined.hpp"
#include "libmx/report/members.hpp"

namespace mx::experiments {
namespace {

using report::record;
using report::tally;
using report::to_value;

report::value optional_real(const std::optional<double>& x) {
    return x ? report::finite_or_null(*x) : report::value();
}

void add_gap(record& to, const std::string& name, const std::optional<lab::paired_gap>& g) {
    const auto add = [&](const char* end, double lab::paired_gap::*of) {
        to.emplace_back(name + end, g ? report::finite_or_null((*g).*of) : report::value());
    };
    add("", &lab::paired_gap::mean);
    add("_low", &lab::paired_gap::low);
    add("_high", &lab::paired_gap::high);
}

record result_of(const finding& f) {
    record r{{"group", f.of.group},
             {"configuration", f.of.name},
             {"settings", f.of.settings},
             {"from_step", tally(f.from_step)},
             {"source", f.of.source},
             {"runs", tally(f.runs)},
             {"unstable", tally(f.unstable)},
             {"loss", optional_real(f.loss)},
             {"pairs", tally(f.gap ? f.gap->pairs : 0)}};
    add_gap(r, "gap", f.gap);
    r.emplace_back("gap_share", optional_real(f.gap_share));
    r.emplace_back("reached", tally(f.reached));
    add_gap(r, "extra", f.extra);
    r.emplace_back("significant", f.gap ? report::value(f.significant()) : report::value());
    r.emplace_back("published", optional_real(f.of.published));
    r.emplace_back("published_words", f.of.published_words);
    const auto error = [&](const char* name, double operand_error::*of) {
        r.emplace_back(name, f.error ? report::finite_or_null((*f.error).*of) : report::value());
    };
    error("error", &operand_error::rmse_over_rms);
    error("error_over_amax", &operand_error::rmse_over_amax);
    error("error_all", &operand_error::rmse_over_rms_all);
    error("gain", &operand_error::gain);
    r.emplace_back("stochastic", f.drawn());
    return r;
}

record correlation_record(const correlation& c) {
    record r{{"group", c.group},
             {"over", c.over},
             {"recipes", tally(c.recipes)},
             {"spearman", optional_real(c.spearman)}};
    const auto add = [&](const char* name, const std::optional<interval>& i) {
        r.emplace_back(std::string(name) + "_low", i ? to_value(i->low) : report::value());
        r.emplace_back(std::string(name) + "_high", i ? to_value(i->high) : report::value());
    };
    add("spearman", c.spearman_interval);
    r.emplace_back("power", optional_real(c.power));
    add("power", c.power_interval);
    return r;
}

record pair_record(const pairing& p) {
    record r{{"group", p.group},
             {"configuration", p.name},
             {"other", p.other},
             {"error_ratio", optional_real(p.error_ratio)},
             {"gain", optional_real(p.gain)},
             {"other_gain", optional_real(p.other_gain)}};
    add_gap(r, "gap", p.gap);
    r.emplace_back("significant", p.significant());
    return r;
}

std::string interval_text(const std::optional<interval>& i) {
    return i ? fmt::format(" (95 %: {:.2f} to {:.2f})", i->low, i->high) : "";
}

// Nats per token of text that is made here, below which no model's expected loss lies.
std::optional<double> floor_of(const lab::run_request& r) {
    if (r.model == lab::model_kind::proxy || !r.text_file.empty()) return std::nullopt;
    return lab::made_text()->floor(r.context);
}

// Half the width of the middle one of the intervals.
std::optional<double> usual_width(const findings& f) {
    std::vector<double> widths;
    for (const finding& one : f.all) {
        const auto& g = one.extra ? one.extra : one.gap;
        if (g) widths.push_back((g->high - g->low) / 2);
    }
    if (widths.empty()) return std::nullopt;
    std::ranges::sort(widths);
    return widths[widths.size() / 2];
}

void say_correlations(const findings& f, std::vector<std::string>& to) {
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
void say_twins(const findings& f, std::vector<std::string>& to) {
    if (!f.correlations.empty()) return;
    for (const pairing& p : f.twins) {
        if (!p.significant()) continue;
        to.push_back(fmt::format("{}: {} ends {:.3g} {} than {} (95 %: {:.3g} to {:.3g})", p.group,
                                 p.name, std::abs(p.gap->mean),
                                 p.gap->mean < 0 ? "lower" : "higher", p.other, p.gap->low,
                                 p.gap->high));
    }
}

void say_gaps(const study_plan& plan, const findings& f, std::vector<std::string>& to) {
    const bool steps = plan.of->measure == yardstick::steps;
    std::vector<std::string> null;
    std::size_t count = 0, broken = 0;
    for (const finding& one : f.all) {
        if (one.is_baseline) continue;
        ++count;
        broken += one.unstable > 0 ? 1u : 0u;
        if (steps && one.runs > 0 && one.reached < one.runs) {
            to.push_back(fmt::format("{}, {}: {} of {} runs reach the loss within the steps",
                                     one.of.group, one.of.name, one.reached, one.runs));
        } else if (one.gap && !one.significant()) {
            if (null.empty() || !null.back().starts_with(one.of.group + ": ")) {
                null.push_back(one.of.group + ": " + one.of.name);
            } else {
                null.back() += ", " + one.of.name;
            }
        }
    }
    to.push_back(fmt::format("{} of {} configurations have unstable runs", broken, count));
    const auto width = usual_width(f);
    const std::string what = steps ? "extra steps" : "loss";
    if (width) {
        to.push_back(fmt::format(
            "the smallest difference in {} that this size can detect: about {} ({} seeds, half the "
            "width of the median interval); it shows nothing about smaller ones, or larger "
            "networks",
            what, steps ? fmt::format("{:.2g} %", 100 * *width) : fmt::format("{:.2g}", *width),
            plan.seeds.size()));
    }
    if (!null.empty()) {
        to.push_back(
            fmt::format("not significantly different from the baseline, which does not "
                        "prove equality: {}",
                        base::joined(null, "; ")));
    }
    if (f.agreement) {
        to.push_back(fmt::format(
            "in the order of the published figures: Spearman {:.2f} over the configurations that "
            "have one",
            *f.agreement));
    }
}

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
    record request;
    for (const auto& [key, value] : lab::to_text(plan.request)) {
        if (key != "seed" && key != "precision") request.emplace_back(key, value);
    }
    return {{"study", std::string(plan.of->name)},
            {"title", std::string(plan.of->title)},
            {"paper", std::string(plan.of->paper)},
            {"on", std::string(lab::name_of(plan.request.model))},
            {"loss_of", std::string(plan.request.text_file.empty() ? "training" : "held_out")},
            {"loss_floor", optional_real(floor_of(plan.request))},
            {"budget_seconds", optional_real(budget)},
            {"command", command},
            {"request", std::move(request)},
            {"seeds", report::to_list(plan.seeds)},
            {"runs", tally(f.trained)},
            {"measure", std::string(plan.of->measure == yardstick::gap ? "gap" : "steps")},
            {"published", std::string(plan.of->published)},
            {"late_share", late_share},
            {"target_share", target_share},
            {"window_share", window_share}};
}

std::vector<record> results_of(const study_plan&, const findings& f) {
    std::vector<record> rows;
    for (const finding& one : f.all) rows.push_back(result_of(one));
    return rows;
}

record tail_of(const findings& f) {
    // Of weights over formats, which is what the figure of Yang et al. shows.
    std::optional<double> first;
    if (!f.correlations.empty()) first = f.correlations.front().spearman;
    return {{"spearman", optional_real(first)},
            {"correlations", report::to_list(f.correlations, correlation_record)},
            {"twins", report::to_list(f.twins, pair_record)},
            {"inversions", report::to_list(f.inversions, pair_record)},
            {"pairs", tally(f.pairs)},
            {"agreement", optional_real(f.agreement)}};
}

std::vector<std::string> sentences_of(const study_plan& plan, const findings& f) {
    std::vector<std::string> all;
    say_correlations(f, all);
    say_twins(f, all);
    say_gaps(plan, f, all);
    return all;
}

}  // namespace mx::experiments
