// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::project {
namespace {

using report::record;
using report::tally;

const target_row* target_of(const study& s, const configuration& c) {
    for (const target_row& t : s.targets) {
        if (t.of.name == c.name) return &t;
    }
    return nullptr;
}

double speedup_of(const study& s, const configuration& c) {
    return project(s.model.shape, s.with, c).speedup();
}

const configuration* configuration_named(const study& s, const std::string& name) {
    const auto at = std::ranges::find(s.configurations, name, &configuration::name);
    return at == s.configurations.end() ? nullptr : &*at;
}

// If FP6 at FP4's rate makes a mixed configuration slower than the narrow one, the remainder is not
// a rate.
void describe_overhead(const study& s, std::vector<std::string>& words) {
    for (const configuration& c : s.configurations) {
        if (!c.mixed() || c.fp6 != fp6_rate::fp4 || c.gradients.is != unit::fp4) continue;
        const configuration* narrow = configuration_named(s, c.gradients.name);
        const target_row* of_mixed = target_of(s, c);
        const target_row* of_narrow = narrow == nullptr ? nullptr : target_of(s, *narrow);
        if (of_mixed == nullptr || of_narrow == nullptr) continue;
        const double more = 1 / of_mixed->speedup - 1 / of_narrow->speedup;
        words.push_back(fmt::format(
            "Rates alone would give {:.2f} for {}, as for {}, because FP6 is as fast as FP4 in it; "
            "the given {:.2f} needs an overhead of {:.1f} % of the bf16 step, perhaps from "
            "quantizing each tensor twice.",
            of_narrow->speedup, c.name, narrow->name, of_mixed->speedup, 100 * more));
    }
}

// Sentences about the given share of mixed products.
void describe_mixed(const study& s, std::vector<std::string>& words) {
    const bool used = std::ranges::any_of(s.configurations, &configuration::mixed);
    if (!used || s.with.mixed_is != mixed_rule::share) return;
    const double least = 1.0 / 3;
    words.push_back(fmt::format(
        "{:.1f} % of the time of the linear layers is at the wider format's rate{}.",
        100 * s.with.mixed,
        s.with.mixed < least ? ": less than the third that Fprop alone is, so that Dgrad and Wgrad "
                               "must run at the narrower format's rate throughout, as they do not "
                               "on units that take the rate of the wider operand"
                             : ""));
}

void describe_shares(const study& s, std::vector<std::string>& words) {
    const std::array<double, 3> shares = shares_of(s.model.shape, s.with);
    assumptions by_flop = s.with;
    by_flop.shares_by_flop = true;
    by_flop.rest.reset();
    const std::array<double, 3> flop = shares_of(s.model.shape, by_flop);
    words.push_back(fmt::format(
        "The linear layers of the MLP take {:.1f} % of the bf16 step, those of attention {:.1f} %, "
        "all else {:.1f} %; no speed-up can exceed {:.3g}.",
        100 * shares[0], 100 * shares[1], 100 * shares[2], 1 / shares[2]));
    if (!s.with.shares_by_flop && !s.measured && std::abs(shares[1] / flop[1] - 1) > 0.1) {
        words.push_back(
            fmt::format("By FLOP they would be {:.1f}, {:.1f} and {:.1f} %: these shares make up "
                        "for rates that "
                        "differ between the classes.",
                        100 * flop[0], 100 * flop[1], 100 * flop[2]));
    }
}

void describe_peak(const study& s, std::vector<std::string>& words) {
    if (!s.by->peak || s.measured || !s.solved.empty()) return;
    words.push_back(
        "These are peak rates: quantization, traffic and communication cost nothing. Measured "
        "steps "
        "gain less; --times takes what products take.");
}

void describe_fp6(const study& s, std::vector<std::string>& words) {
    if (s.with.fp6_is == fp6_rule::as_fp8) {
        words.push_back("FP6 runs at FP8's rate here: it saves memory and traffic, no time.");
    } else if (s.with.fp6_is == fp6_rule::as_fp4) {
        words.push_back(
            "FP6 runs at FP4's rate here: FP4 saves memory and traffic over it, no time.");
    }
}

void describe_targets(const study& s, std::vector<std::string>& words) {
    double largest = 0;
    std::string where;
    std::size_t inside = 0, compared = 0;
    for (const configuration& c : s.configurations) {
        const target_row* t = target_of(s, c);
        if (t == nullptr) continue;
        ++compared;
        const double speedup = speedup_of(s, c);
        if (std::abs(speedup - t->speedup) <= t->half_unit) ++inside;
        if (std::abs(speedup / t->speedup - 1) > std::abs(largest)) {
            largest = speedup / t->speedup - 1;
            where = c.name;
        }
    }
    if (compared == 0) return;
    std::string text =
        fmt::format("{} of {} given speed-ups agree to their last digit", inside, compared);
    if (inside < compared)
        text += fmt::format("; the largest deviation is {:+.1f} %, of {}", 100 * largest, where);
    // The profiles without peak rates are fits to published speed-ups.
    const std::size_t fitted =
        !s.solved.empty() ? s.solved.size()
        : s.by->peak || s.measured
            ? 0
            : static_cast<std::size_t>(std::ranges::count(s.by->free, ',')) + 1;
    if (fitted > 0) {
        text += fmt::format(". {} parameters were fitted to {}: agreement is no evidence for them",
                            fitted, s.solved.empty() ? "published speed-ups" : "these");
    }
    words.push_back(text + ".");
}

}  // namespace

record model_record(const study& s) {
    const model_shape& m = s.model.shape;
    return {{"name", s.model.name},
            {"hidden", tally(m.hidden)},
            {"feed_forward", tally(m.feed_forward)},
            {"layers", tally(m.layers)},
            {"heads", tally(m.heads)},
            {"kv_heads", tally(m.kv_heads)},
            {"head_size", tally(m.head_size)},
            {"vocabulary", tally(m.vocabulary)},
            {"parameters", parameters(m)},
            {"linear_parameters", linear_parameters(m)},
            {"sequence", s.with.sequence},
            {"causal", s.with.causal}};
}

record assumptions_record(const study& s) {
    const std::array<double, 3> shares = shares_of(s.model.shape, s.with);
    record r{{"profile", std::string(s.by->name)},
             {"source",
              s.by->source.empty() ? report::value() : report::value(std::string(s.by->source))},
             {"mlp_share", shares[0]},
             {"attention_share", shares[1]},
             {"rest_share", shares[2]}};
    for (const unit u : {unit::fp8, unit::fp6, unit::fp4}) {
        const std::string name(unit_names[static_cast<std::size_t>(u)]);
        r.emplace_back(name + "_mlp", rate_of(s.with, 0, u, fp6_rate::own));
        r.emplace_back(name + "_attention", rate_of(s.with, 1, u, fp6_rate::own));
    }
    r.emplace_back("mixed_rule",
                   std::string(mixed_rule_names[static_cast<std::size_t>(s.with.mixed_is)]));
    r.emplace_back("mixed", s.with.mixed_is == mixed_rule::share ? report::value(s.with.mixed)
                                                                 : report::value());
    r.emplace_back("overhead", s.with.overhead);
    r.emplace_back("bf16_seconds",
                   s.measured ? report::value(s.measured->seconds) : report::value());
    r.emplace_back("tokens", s.measured ? report::value(s.tokens) : report::value());
    return r;
}

std::vector<record> work_records(const study& s) {
    const std::array<double, 4> flop = forward_flop(s.model.shape, s.with.sequence, s.with.causal);
    const double all = flop[0] + flop[1] + flop[2] + flop[3];
    std::vector<record> rows;
    for (std::size_t i = 0; i < flop.size(); ++i) {
        rows.push_back({{"class", std::string(work_names[i])},
                        {"forward_flop", flop[i]},
                        {"step_flop", 3 * flop[i]},
                        {"share", flop[i] / all}});
    }
    return rows;
}

record configuration_record(const study& s, const configuration& c) {
    const projection p = project(s.model.shape, s.with, c);
    const target_row* t = target_of(s, c);
    const double hidden = static_cast<double>(s.model.shape.hidden);
    record r{
        {"configuration", c.name},
        {"speedup", p.speedup()},
        {"time", p.time()},
        {"mlp", p.mlp},
        {"attention", p.attention},
        {"rest", p.rest},
        {"overhead", p.overhead},
        {"seconds", s.measured ? report::value(p.time() * s.measured->seconds) : report::value()},
        {"published", t == nullptr ? report::value() : report::value(t->speedup)},
        {"difference",
         t == nullptr ? report::value() : report::value(p.speedup() / t->speedup - 1)},
        {"fitted", t == nullptr || s.solved.empty() ? report::value() : report::value(!t->check)},
        {"weights", c.weights.name},
        {"activations", c.activations.name},
        {"gradients", c.forward_only ? std::string("bf16") : c.gradients.name},
        {"weight_bits", c.weights.bits},
        {"activation_bits", c.activations.bits},
        {"gradient_bits", c.forward_only ? 16.0 : c.gradients.bits}};
    // For the quantized linear layers; the others stay in bf16.
    double quantized = 0;
    for (const linear_layer& l : linear_layers(s.model.shape)) {
        const bool in_scope = l.is == work::mlp ? c.mlp : c.attention;
        const double count = static_cast<double>(l.out) * static_cast<double>(l.in) *
                             static_cast<double>(s.model.shape.layers);
        quantized += count * (in_scope ? c.weights.bits : 16.0) / 8;
    }
    r.emplace_back("weight_bytes", quantized);
    r.emplace_back("activation_bytes", hidden * c.activations.bits / 8);
    r.emplace_back("gradient_bytes", hidden * (c.forward_only ? 16.0 : c.gradients.bits) / 8);
    return r;
}

std::vector<record> parameter_records(const study& s) {
    std::vector<record> rows;
    for (const solved_parameter& p : s.solved) {
        rows.push_back(
            {{"parameter", p.name}, {"value", p.value}, {"low", p.low}, {"high", p.high}});
    }
    return rows;
}

std::vector<record> sensitivity_records(const study& s) {
    std::vector<record> rows;
    constexpr double change = 0.01;
    for (const configuration& c : s.configurations) {
        const double before = speedup_of(s, c);
        for (const std::string& name : parameters_in_use(s.with)) {
            assumptions more = s.with;
            const double now = parameter_of(s.model.shape, s.with, name);
            set_parameter(s.model.shape, more, name, now * (1 + change));
            const double after = project(s.model.shape, more, c).speedup();
            rows.push_back({{"configuration", c.name},
                            {"parameter", name},
                            {"value", now},
                            {"change", after / before - 1}});
        }
    }
    return rows;
}

std::vector<std::string> projection_summary(const study& s) {
    std::vector<std::string> words;
    describe_shares(s, words);
    describe_peak(s, words);
    describe_fp6(s, words);
    describe_mixed(s, words);
    describe_targets(s, words);
    describe_overhead(s, words);
    if (s.measured) {
        words.push_back(fmt::format(
            "{} of {} products were measured in their own shape, the others take the rate of the "
            "nearest one.",
            s.measured->exact, s.measured->of));
        for (const unit u : s.measured->missing) {
            words.push_back(fmt::format("No time of {} was measured: its rate is the profile's.",
                                        unit_names[static_cast<std::size_t>(u)]));
        }
    }
    return words;
}

}  // namespace mx::project
