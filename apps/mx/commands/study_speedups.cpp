// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "apps/mx/options.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/report/csv_reader.hpp"
#include "libmx/studies/project/records.hpp"

namespace mx::app {
namespace {

using project::assumptions;

struct project_options {
    std::string model = "llama3-405b", profile = "yang-fit";
    std::vector<std::string> configurations, checks, free;
    std::string shares, fp8, fp6, fp4, mixed, attention, targets, times;
    std::optional<double> overhead;
    std::uint64_t sequence = project::default_sequence;
    double tokens = project::default_sequence;
    output_options out;
    bool quiet = false;
};

double rate_value(const std::string& text, const std::string& option) {
    const auto x = report::finite_number(text);
    if (!x) refuse("{}: '{}' is not a number", option, text);
    return *x;
}

std::vector<std::string> comma_parts(const std::string& text) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == ',') {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

// "2", or "mlp=2.05,attention=1.13".
void set_rate(const project::model_shape& m, assumptions& a, const std::string& unit,
              const std::string& text) {
    const std::string option = "--" + unit;
    for (const std::string& part : comma_parts(text)) {
        const std::size_t at = part.find('=');
        if (at == std::string::npos) {
            project::set_parameter(m, a, unit, rate_value(part, option));
            continue;
        }
        const std::string of = part.substr(0, at);
        require_one_of(option, "class", of, {"mlp", "attention"});
        project::set_parameter(m, a, fmt::format("{}.{}", unit, of),
                               rate_value(part.substr(at + 1), option));
    }
}

void set_shares(const project::model_shape& m, assumptions& a, const std::string& text) {
    if (text == "flop") {
        a.shares_by_flop = true;
        return;
    }
    for (const std::string& part : comma_parts(text)) {
        const std::size_t at = part.find('=');
        const std::string of = part.substr(0, at);
        require_one_of("--shares", "class", of, {"flop", "mlp", "attention"});
        if (at == std::string::npos || of == "flop") refuse("--shares: '{}' is not CLASS=X", part);
        project::set_parameter(m, a, of, rate_value(part.substr(at + 1), "--shares"));
    }
}

// The changes that options make to the profile.
assumptions assumptions_of(const project_options& o, const project::model_shape& m,
                           const project::profile& by) {
    assumptions a = by.assumes;
    a.sequence = static_cast<double>(o.sequence);
    if (!o.attention.empty()) {
        require_one_of("--attention", "attention", o.attention, {"causal", "full"});
        a.causal = o.attention == "causal";
    }
    if (!o.shares.empty()) set_shares(m, a, o.shares);
    if (!o.fp8.empty()) set_rate(m, a, "fp8", o.fp8);
    if (o.fp4 == "double" || o.fp4 == "square") {
        a.fp4_is = o.fp4 == "double" ? project::fp4_rule::twice : project::fp4_rule::square;
    } else if (!o.fp4.empty()) {
        set_rate(m, a, "fp4", o.fp4);
    }
    const auto rule = std::ranges::find(project::fp6_rule_names, o.fp6);
    if (!o.fp6.empty() && o.fp6 != "given" && rule != project::fp6_rule_names.end()) {
        a.fp6_is = static_cast<project::fp6_rule>(rule - project::fp6_rule_names.begin());
    } else if (!o.fp6.empty()) {
        set_rate(m, a, "fp6", o.fp6);
    }
    if (o.mixed == "wide" || o.mixed == "narrow") {
        a.mixed_is = o.mixed == "wide" ? project::mixed_rule::wide : project::mixed_rule::narrow;
    } else if (!o.mixed.empty()) {
        project::set_parameter(m, a, "mixed", rate_value(o.mixed, "--mixed"));
    }
    if (o.overhead) a.overhead = *o.overhead;
    return a;
}

std::vector<project::target_row> published_targets() {
    std::vector<project::target_row> rows;
    for (const project::published_row& row : project::published_rows) {
        rows.push_back({project::parse_configuration(std::string(row.configuration)), row.speedup,
                        0.005, false});
    }
    return rows;
}

void add_configuration(project::study& s, project::configuration c) {
    const bool there = std::ranges::any_of(s.configurations,
                                           [&](const auto& other) { return other.name == c.name; });
    if (!there) s.configurations.push_back(std::move(c));
}

void mark_checks(const project_options& o, std::vector<project::target_row>& targets) {
    for (const std::string& text : o.checks) {
        const std::string name = project::parse_configuration(text).name;
        const auto at = std::ranges::find_if(
            targets, [&](const project::target_row& t) { return t.of.name == name; });
        if (at == targets.end()) refuse("--check: the table of --solve has no {}", name);
        at->check = true;
    }
}

project::study study_of(const project_options& o) {
    if (o.targets.empty() && (!o.free.empty() || !o.checks.empty())) {
        refuse("--free and --check go with --solve");
    }
    project::study s;
    s.by = &base::row_named(project::profiles, "profile", o.profile);
    s.model = project::find_model(o.model);
    const project::model_shape& m = s.model.shape;
    s.with = assumptions_of(o, m, *s.by);
    if (!o.times.empty()) {
        if (!(o.tokens >= 1)) refuse("--batch must be 1 or more");
        s.tokens = o.tokens;
        s.measured = project::take_measured(o.times, m, o.tokens, s.with);
    }
    project::check(m, s.with);
    for (const std::string& text : o.configurations) {
        add_configuration(s, project::parse_configuration(text));
    }
    if (!o.targets.empty()) {
        s.targets = project::read_targets(o.targets);
        mark_checks(o, s.targets);
        for (const project::target_row& t : s.targets) add_configuration(s, t.of);
        const std::vector<std::string> free =
            o.free.empty() ? comma_parts(std::string(s.by->free)) : o.free;
        project::solution found = project::solve(m, s.with, free, s.targets);
        s.with = found.with;
        s.solved = std::move(found.parameters);
        return s;
    }
    // The published figures that profiles were fitted to.
    const bool fitted = o.profile.starts_with("yang-") && o.model == "llama3-405b";
    if (fitted) s.targets = published_targets();
    if (s.configurations.empty()) {
        for (const project::target_row& t : published_targets()) add_configuration(s, t.of);
    }
    return s;
}

int run_project(const project_options& o) {
    std::vector<std::string> inputs;
    for (const std::string& path : {o.targets, o.times}) {
        if (!path.empty()) inputs.push_back(path);
    }
    outputs to(o.out, inputs);
    const project::study s = study_of(o);
    report::document d;
    d.title = "A training step, projected";
    d.head = pages::document_head("mx.project/1");
    const report::record head = project::head_of(s);
    d.head.insert(d.head.end(), head.begin(), head.end());
    for (const project::configuration& c : s.configurations) {
        d.results.push_back(project::configuration_record(s, c));
    }
    d.tail = project::tail_of(s);
    finish_with_page(to, d, project::projection_summary(s), o.quiet);
    return exit_code::fine;
}

void declare_rates(parser& cmd, project_options& o) {
    cmd.group("Rates");
    cmd.add_option(
        "--profile NAME", o.profile,
        fmt::format("{}; default yang-fit", base::joined(base::names_of(project::profiles), ", ")));
    cmd.add_option("--fp8 X", o.fp8,
                   "rate of linear layers over bf16, or mlp=X,attention=Y; here and below instead "
                   "of the profile's");
    cmd.add_option("--fp6 X", o.fp6,
                   "the same of FP6, or: fp8, fp4 (as fast as these), mean, geometric (between)");
    cmd.add_option("--fp4 X", o.fp4, "the same of FP4, or: double, square (of FP8's)");
    cmd.add_option("--shares SHARES", o.shares,
                   "of the bf16 step: flop, or mlp=X,attention=Y; the rest is not quantized");
    cmd.add_option("--mixed X", o.mixed,
                   "products of two formats: wide (at the rate of the wider one), narrow, or the "
                   "share of the linear layers' time at the rate of the wider one");
    cmd.add_option("--overhead X", o.overhead,
                   "share of the bf16 step that is added if tensors are needed in two formats")
        ->finite();
    cmd.add_option("--times FILE.csv", o.times,
                   "rates and shares from measured products: columns M, N, K, format (bf16, fp8, "
                   "fp6, fp4) and seconds");
    cmd.add_option("--batch B", o.tokens, "tokens of a step, with --times (8192)")->finite();
}

}  // namespace

runner declare_speedups(parser& cmd) {
    const auto o = std::make_shared<project_options>();
    cmd.group("Model");
    cmd.add_option("--model MODEL", o->model,
                   fmt::format("{} (default), or a config.json of Hugging Face",
                               base::joined(base::names_of(project::model_shapes), ", ")));
    cmd.add_option("--context N", o->sequence, "tokens of a sequence (8192)")
        ->in_range(std::uint64_t{1}, std::uint64_t{1} << 32);
    cmd.add_option("--attention KIND", o->attention, "scores: causal (default) or full");
    cmd.group("Configurations");
    cmd.add_option("-c,--configuration CONFIGURATION", o->configurations,
                   "FORMAT, or WEIGHTS/ACTIVATIONS/GRADIENTS, with :scope=mlp|attention, "
                   "products=fprop, fp6=fp8|fp4; repeatable; default: those of Yang et al.");
    declare_rates(cmd, *o);
    cmd.group("Fit");
    cmd.add_option("--solve FILE.csv", o->targets,
                   "fit parameters to speed-ups: columns configuration and speedup");
    cmd.add_option("--free NAME,...", o->free,
                   "which: mlp, attention, rest, fp8, fp6, fp4 (or fp8.mlp, ...), mixed, overhead; "
                   "default: the profile's")
        ->delimiter(',');
    cmd.add_option("--check CONFIGURATION", o->checks,
                   "a row of that table to compare with, not to fit to; repeatable");
    declare_outputs(cmd, o->out);
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Projects the time of a training step and its speed-up over bf16: work by class from a "
        "model's shapes, rates of each format from a profile, options or measured products. The "
        "profiles yang-fit and yang-shapes explain the speed-ups that Yang et al. give for Llama "
        "3 405B; b200, mi355x and ideal are peak rates. Bits per element and bytes to move are "
        "those of the formats. With --solve, fits unknown parameters to given speed-ups, with the "
        "intervals that their rounding allows.");
    cmd.examples(
        "mx study speedups --model llama3-405b --profile yang-fit\n"
        "mx study speedups --profile b200 -c mxfp8 -c nvfp4 -c mxfp6/mxfp6/mxfp4\n"
        "mx study speedups --model config.json --profile mi355x --json speed.json\n"
        "mx study speedups --solve published.csv --check mxfp6/mxfp6/mxfp4\n"
        "mx study speedups --profile b200 --times products.csv --batch 16384\n");
    return [o] { return run_project(*o); };
}

}  // namespace mx::app
