// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::project {
namespace {

using report::record;

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

namespace {

template <auto Part>
constexpr auto of_model = [](auto& s) { return s.model.shape.*Part; };
template <std::size_t Class>
constexpr auto share_of = [](auto& s) { return shares_of(s.model.shape, s.with)[Class]; };
template <unit Unit, std::size_t Class>
constexpr auto rate = [](auto& s) { return rate_of(s.with, Class, Unit, fp6_rate::own); };

constexpr std::array model_members = std::to_array<report::declared<study>>({
    {"name", "string", "", [](auto& s) { return s.model.name; }},
    {"hidden", "count", "", of_model<&model_shape::hidden>},
    {"feed_forward", "count", "", of_model<&model_shape::feed_forward>},
    {"layers", "count", "", of_model<&model_shape::layers>},
    {"heads", "count", "", of_model<&model_shape::heads>},
    {"kv_heads", "count", "", of_model<&model_shape::kv_heads>},
    {"head_size", "count", "", of_model<&model_shape::head_size>},
    {"vocabulary", "count", "", of_model<&model_shape::vocabulary>},
    {"parameters", "amount", "without norms", [](auto& s) { return parameters(s.model.shape); }},
    {"linear_parameters", "amount", "of the linear layers of all blocks",
     [](auto& s) { return linear_parameters(s.model.shape); }},
    {"sequence", "amount", "tokens", [](auto& s) { return s.with.sequence; }},
    {"causal", "boolean", "scores cost half", [](auto& s) { return s.with.causal; }},
});

constexpr std::array assumption_members = std::to_array<report::declared<study>>({
    {"profile", "string", "", [](auto& s) { return s.by->name; }},
    {"source", "string?", "",
     [](auto& s) {
         return s.by->source.empty() ? report::value() : report::to_value(s.by->source);
     }},
    {"mlp_share", "share", "of the bf16 step", share_of<0>},
    {"attention_share", "share", "", share_of<1>},
    {"rest_share", "share", "", share_of<2>},
    {"fp8_mlp", "positive", "rates over bf16", rate<unit::fp8, 0>},
    {"fp8_attention", "positive", "", rate<unit::fp8, 1>},
    {"fp6_mlp", "positive", "", rate<unit::fp6, 0>},
    {"fp6_attention", "positive", "", rate<unit::fp6, 1>},
    {"fp4_mlp", "positive", "", rate<unit::fp4, 0>},
    {"fp4_attention", "positive", "", rate<unit::fp4, 1>},
    {"mixed_rule", "wide|narrow|share", "the rate of products of two formats",
     [](auto& s) { return mixed_rule_names[static_cast<std::size_t>(s.with.mixed_is)]; }},
    {"mixed", "number?",
     "share of the linear layers' time at the wider format's rate; null: a rule decides",
     [](auto& s) {
         return s.with.mixed_is == mixed_rule::share ? report::value(s.with.mixed)
                                                     : report::value();
     }},
    {"overhead", "number", "of the bf16 step, where tensors are needed in two formats",
     [](auto& s) { return s.with.overhead; }},
    {"bf16_seconds", "number?", "of the step that was measured; null: rates are relative",
     [](auto& s) { return s.measured ? report::value(s.measured->seconds) : report::value(); }},
    {"tokens", "number?", "of that step",
     [](auto& s) { return s.measured ? report::value(s.tokens) : report::value(); }},
});

struct class_of_work {
    std::string_view name;
    double flop, all;
};
constexpr std::array work_members = std::to_array<report::declared<class_of_work>>({
    {"class", "mlp|attention|scores|head", "", [](auto& w) { return w.name; }},
    {"forward_flop", "amount", "a token", [](auto& w) { return w.flop; }},
    {"step_flop", "amount", "three times that", [](auto& w) { return 3 * w.flop; }},
    {"share", "share", "", [](auto& w) { return w.flop / w.all; }},
});

report::list work_of(const study& s) {
    const std::array<double, 4> flop = forward_flop(s.model.shape, s.with.sequence, s.with.causal);
    const double all = flop[0] + flop[1] + flop[2] + flop[3];
    report::list rows;
    for (std::size_t i = 0; i < flop.size(); ++i) {
        rows.emplace_back(report::written(work_members, {work_names[i], flop[i], all}));
    }
    return rows;
}

constexpr std::array head_members = std::to_array<report::declared<study>>({
    {"model", "#model", "", [](auto& s) { return report::written(model_members, s); }},
    {"assumptions", "#assumptions", "what the projection stands on",
     [](auto& s) { return report::written(assumption_members, s); }},
    {"work", "[#work]", "a class each", [](auto& s) { return work_of(s); }},
});

struct projected {
    const study& s;
    const configuration& c;
    projection p = project(s.model.shape, s.with, c);
    const target_row* t = target_of(s, c);

    double gradient_bits() const { return c.forward_only ? 16.0 : c.gradients.bits; }
    double row_bytes(double bits) const {
        return static_cast<double>(s.model.shape.hidden) * bits / 8;
    }
    // For the quantized linear layers; the others stay in bf16.
    double weight_bytes() const {
        double quantized = 0;
        for (const linear_layer& l : linear_layers(s.model.shape)) {
            const bool in_scope = l.is == work::mlp ? c.mlp : c.attention;
            const double count = static_cast<double>(l.out) * static_cast<double>(l.in) *
                                 static_cast<double>(s.model.shape.layers);
            quantized += count * (in_scope ? c.weights.bits : 16.0) / 8;
        }
        return quantized;
    }
};
constexpr std::array configuration_members = std::to_array<report::declared<projected>>({
    {"configuration", "string", "", [](auto& r) { return r.c.name; }},
    {"speedup", "number", "over bf16", [](auto& r) { return r.p.speedup(); }},
    {"time", "number", "of the bf16 step", [](auto& r) { return r.p.time(); }},
    {"mlp", "number", "time of its linear layers", [](auto& r) { return r.p.mlp; }},
    {"attention", "number", "time of its linear layers", [](auto& r) { return r.p.attention; }},
    {"rest", "number", "time of all else", [](auto& r) { return r.p.rest; }},
    {"overhead", "number", "time", [](auto& r) { return r.p.overhead; }},
    {"seconds", "number?", "where times were measured",
     [](auto& r) {
         return r.s.measured ? report::value(r.p.time() * r.s.measured->seconds) : report::value();
     }},
    {"published", "number?", "the speed-up that is compared with",
     [](auto& r) { return r.t ? report::value(r.t->speedup) : report::value(); }},
    {"difference", "number?", "speedup / published - 1",
     [](auto& r) {
         return r.t ? report::value(r.p.speedup() / r.t->speedup - 1) : report::value();
     }},
    {"fitted", "boolean?", "fitted to published, not compared alone; null: nothing was fitted",
     [](auto& r) {
         return r.t && !r.s.solved.empty() ? report::value(!r.t->check) : report::value();
     }},
    {"weights", "string", "format", [](auto& r) { return r.c.weights.name; }},
    {"activations", "string", "format", [](auto& r) { return r.c.activations.name; }},
    {"gradients", "string", "format",
     [](auto& r) { return r.c.forward_only ? std::string("bf16") : r.c.gradients.name; }},
    {"weight_bits", "amount", "an element, scales included",
     [](auto& r) { return r.c.weights.bits; }},
    {"activation_bits", "amount", "", [](auto& r) { return r.c.activations.bits; }},
    {"gradient_bits", "amount", "", [](auto& r) { return r.gradient_bits(); }},
    {"weight_bytes", "amount", "of all linear layers", [](auto& r) { return r.weight_bytes(); }},
    {"activation_bytes", "amount", "a token, from one block to the next",
     [](auto& r) { return r.row_bytes(r.c.activations.bits); }},
    {"gradient_bytes", "amount", "the same of gradients",
     [](auto& r) { return r.row_bytes(r.gradient_bits()); }},
});

constexpr std::array parameter_members = std::to_array<report::declared<solved_parameter>>({
    {"parameter", "string", "", [](auto& p) { return p.name; }},
    {"value", "number", "", [](auto& p) { return p.value; }},
    {"low", "number", "over all that the given speed-ups may be rounded from",
     [](auto& p) { return p.low; }},
    {"high", "number", "", [](auto& p) { return p.high; }},
});

struct sensitivity {
    const std::string &configuration, &parameter;
    double value, change;
};
constexpr std::array sensitivity_members = std::to_array<report::declared<sensitivity>>({
    {"configuration", "string", "", [](auto& x) { return x.configuration; }},
    {"parameter", "string", "", [](auto& x) { return x.parameter; }},
    {"value", "number", "", [](auto& x) { return x.value; }},
    {"change", "number", "of the speed-up, where the parameter grows by 1 %",
     [](auto& x) { return x.change; }},
});

report::list sensitivities_of(const study& s) {
    report::list rows;
    constexpr double change = 0.01;
    for (const configuration& c : s.configurations) {
        const double before = speedup_of(s, c);
        for (const std::string& name : parameters_in_use(s.with)) {
            assumptions more = s.with;
            const double now = parameter_of(s.model.shape, s.with, name);
            set_parameter(s.model.shape, more, name, now * (1 + change));
            const double after = project(s.model.shape, more, c).speedup();
            rows.emplace_back(
                report::written(sensitivity_members, {c.name, name, now, after / before - 1}));
        }
    }
    return rows;
}

constexpr std::array tail_members = std::to_array<report::declared<study>>({
    {"parameters", "[#parameter]", "that --solve fitted",
     [](auto& s) { return report::listed(parameter_members, s.solved); }},
    {"sensitivity", "[#sensitivity]", "", [](auto& s) { return sensitivities_of(s); }},
});

}  // namespace

record head_of(const study& s) { return report::written(head_members, s); }
record tail_of(const study& s) { return report::written(tail_members, s); }
record configuration_record(const study& s, const configuration& c) {
    return report::written(configuration_members, {s, c});
}

report::document_schema project_schema() {
    return report::document_schema("mx.project/1", "mx study speedups",
                                   "The time of a training step, projected.")
        .members(head_members)
        .member({"results", "[#configuration]", "a configuration each"})
        .members(tail_members)
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .define("model", model_members)
        .define("assumptions", assumption_members)
        .define("work", work_members)
        .define("configuration", configuration_members)
        .define("parameter", parameter_members)
        .define("sensitivity", sensitivity_members);
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
