// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/mx/options.hpp"
#include "libmx/analysis/results_input.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/lab/curves.hpp"
#include "libmx/lab/probe.hpp"
#include "libmx/lab/run_folder.hpp"
#include "libmx/lab/survival.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "libmx/pages/document_parts.hpp"
#include "libmx/pages/runs_page.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;
using report::record;

struct runs_options {
    std::vector<std::string> folders;
    double factor = 10;
    std::uint64_t window = 100;
    output_options out;
    bool quiet = false;
};

// A run as described by its run.json.
struct told_run {
    std::string path, group, pair;  // pair: all settings except the group
    std::string status;
    std::vector<float> losses;
    std::vector<std::uint64_t> interventions;
    report::list probes;  // with their steps and losses
    lab::lifetime life;
    std::optional<double> late_loss;  // mean of the last 30 % of the steps
};

// Runs with the same precision and interventions.
struct run_group {
    std::string name;
    std::vector<const told_run*> runs;
    std::vector<lab::lifetime> lives() const {
        std::vector<lab::lifetime> all;
        for (const told_run* r : runs) all.push_back(r->life);
        return all;
    }
};

// The run.json files in a folder or at most two levels below it.
void find_runs(const fs::path& at, int depth, std::vector<std::string>& found) {
    std::error_code failure;
    if (!fs::is_directory(at, failure)) {
        found.push_back(at.string());
        return;
    }
    if (fs::exists(at / lab::run_name, failure)) found.push_back((at / lab::run_name).string());
    if (depth == 0) return;
    std::vector<fs::path> below;
    for (fs::directory_iterator it(at, failure), end; !failure && it != end;
         it.increment(failure)) {
        std::error_code none;
        if (fs::is_directory(it->path(), none)) below.push_back(it->path());
    }
    std::ranges::sort(below);
    for (const fs::path& path : below) find_runs(path, depth - 1, found);
}

report::value optional_real(std::optional<double> x) {
    return x ? report::finite_or_null(*x) : undefined();
}

// The last probe of `r` in which all figures of gains are defined.
record probe_of(const told_run& r, const record& probe) {
    report::list list;
    const auto* gains = report::member<record>(probe, "gains");
    for (const auto& [tensor, figures] : gains == nullptr ? record() : *gains) {
        const auto* of = std::get_if<record>(&figures);
        const auto lacks = [&](const char* name) { return !report::number_of(*of, name); };
        if (of == nullptr || lacks("least") || lacks("median") || lacks("largest")) continue;
        record row{{"tensor", tensor}};
        for (const char* name : {"least", "median", "largest", "clamp_zone_from"}) {
            row.emplace_back(name, optional_real(report::number_of(*of, name)));
        }
        list.emplace_back(std::move(row));
    }
    return {{"step", integer(r.losses.size())},
            {"loss", optional_real(static_cast<double>(r.losses.back()))},
            {"zeta", optional_real(report::number_of(probe, "zeta"))},
            {"gains", std::move(list)}};
}

told_run read_run(const std::string& path, const lab::instability_rule& rule) {
    report::read_options options;
    options.expected = "the folder of a run of mx train, or its run.json";
    const analysis::results_input in = analysis::open_results(path, options);
    const auto damaged = [&](const std::string& what) {
        throw base::error(base::error_kind::input, what, {path, {}, {}});
    };
    if (in.content.kind != "run") {
        damaged(fmt::format("holds mx.{}, not a run of mx train", in.content.kind));
    }
    const auto* request = report::member<record>(in.content.head, "request");
    const auto* steps = report::member<report::list>(in.content.tail, "steps");
    if (in.content.results.empty() || request == nullptr || steps == nullptr) {
        damaged("has no request and steps");
    }
    told_run r;
    r.path = path;
    r.status = report::text_of(in.content.results.front(), "status");
    r.group = report::text_of(*request, "precision");
    for (const auto& [key, value] : *request) {
        const std::string text = report::text_of(*request, key);
        if (key.rfind("at.", 0) == 0) {
            r.group += fmt::format(" at {}", text);
            r.interventions.push_back(std::strtoull(text.c_str(), nullptr, 10));
        } else if (key != "precision" && key != "steps" && key.rfind("probe", 0) != 0) {
            r.pair += fmt::format("{}={} ", key, text);
        }
    }
    if (r.group.empty()) r.group = "fp32";
    for (const report::value& v : *steps) {
        const auto* step = std::get_if<record>(&v);
        if (step == nullptr) damaged("has a step that is not an object");
        r.losses.push_back(static_cast<float>(report::number_of(*step, "loss").value_or(NAN)));
        if (const auto* probe = report::member<record>(*step, "probe")) {
            r.probes.emplace_back(probe_of(r, *probe));
        }
    }
    const auto broke = lab::first_instability(r.losses, rule);
    r.life = {broke.value_or(r.losses.size()), broke.has_value()};
    const std::size_t from = r.losses.size() * 7 / 10;
    double sum = 0;
    for (std::size_t i = from; i < r.losses.size(); ++i) sum += static_cast<double>(r.losses[i]);
    if (from < r.losses.size() && std::isfinite(sum)) {
        r.late_loss = sum / static_cast<double>(r.losses.size() - from);
    }
    return r;
}

// In order of first appearance.
std::vector<run_group> groups_of(const std::vector<told_run>& runs) {
    std::vector<run_group> groups;
    for (const told_run& r : runs) {
        auto at = std::ranges::find(groups, r.group, &run_group::name);
        if (at == groups.end()) at = groups.insert(groups.end(), {r.group, {}});
        at->runs.push_back(&r);
    }
    return groups;
}

record group_record(const run_group& g, const run_group& first) {
    const std::vector<lab::lifetime> lives = g.lives();
    const lab::survival_point end = lab::survival_of(lives).back();
    record r{{"group", g.name},
             {"runs", integer(g.runs.size())},
             {"unstable",
              integer(std::ranges::count_if(lives, [](const auto& l) { return l.unstable; }))},
             {"survival", real(end.share)},
             {"survival_low", real(end.low)},
             {"survival_high", real(end.high)}};
    const auto test = &g == &first ? std::nullopt : lab::log_rank(first.lives(), lives);
    r.emplace_back("log_rank_chi_squared", test ? real(test->chi_squared) : undefined());
    r.emplace_back("log_rank_p", test ? real(test->p) : undefined());
    // Losses of pairs that differ only in the group and stayed stable.
    std::vector<double> differences;
    for (const told_run* a : g.runs) {
        for (const told_run* b : first.runs) {
            if (&g == &first || a->pair != b->pair || a->life.unstable || b->life.unstable ||
                a->losses.size() != b->losses.size() || !a->late_loss || !b->late_loss) {
                continue;
            }
            differences.push_back(*a->late_loss - *b->late_loss);
        }
    }
    const auto gap = lab::gap_of(differences);
    r.emplace_back("pairs", integer(differences.size()));
    r.emplace_back("gap", gap ? real(gap->mean) : undefined());
    r.emplace_back("gap_low", gap ? real(gap->low) : undefined());
    r.emplace_back("gap_high", gap ? real(gap->high) : undefined());
    const auto point = [](const lab::survival_point& p) {
        return record{{"step", integer(p.step)},
                      {"at_risk", integer(p.at_risk)},
                      {"unstable", integer(p.events)},
                      {"survival", real(p.share)},
                      {"low", real(p.low)},
                      {"high", real(p.high)}};
    };
    r.emplace_back("survival_curve", to_list(lab::survival_of(lives), point));
    return r;
}

// The dumps in a run's folder, by step.
std::map<std::uint64_t, std::string> dumps_of(const told_run& r) {
    constexpr std::string_view before = "dump-", after = ".safetensors";
    std::map<std::uint64_t, std::string> dumps;
    std::error_code failure;
    for (fs::directory_iterator it(fs::path(r.path).parent_path(), failure), end;
         !failure && it != end; it.increment(failure)) {
        const std::string name = it->path().filename().string();
        if (!name.starts_with(before) || !name.ends_with(after)) continue;
        const std::size_t digits = name.size() - before.size() - after.size();
        const auto step = base::parsed<std::uint64_t>(name.substr(before.size(), digits));
        if (step) dumps.emplace(*step, it->path().string());
    }
    return dumps;
}

// Compares the gradients of two runs at one step, each at its own parameters, like the code
// published with arXiv 2506.20752. Frozen norm biases count as zeros.
record across_record(const told_run& a, const told_run& b, std::uint64_t step,
                     const std::string& of_a, const std::string& of_b) {
    const lab::tensor_file q(of_a), g(of_b);
    lab::gradient_sums sums;
    for (const std::string& name : g.names()) {
        if (name.rfind("grad.", 0) != 0) continue;
        sums.add(q.read(name, g.info(name).shape), g.read(name));
    }
    const auto m = sums.measures();
    return {{"run", a.path},
            {"against", b.path},
            {"step", integer(step)},
            {"zeta_norm", m ? real(m->zeta * m->zeta) : undefined()},
            {"rhs", m && m->zeta > 0 ? real(2 / (m->zeta * m->zeta)) : undefined()},
            {"cosine", m ? real(m->cosine) : undefined()},
            {"norm_ratio", m ? real(m->norm_ratio) : undefined()}};
}

std::vector<record> across_records(const std::vector<run_group>& groups) {
    std::vector<record> all;
    for (const told_run* b : groups.front().runs) {
        const auto of_b = dumps_of(*b);
        if (of_b.empty()) continue;
        for (const run_group& g : groups) {
            for (const told_run* a : g.runs) {
                if (&g == &groups.front() || a->pair != b->pair) continue;
                for (const auto& [step, path] : dumps_of(*a)) {
                    const auto other = of_b.find(step);
                    if (other == of_b.end()) continue;
                    all.push_back(across_record(*a, *b, step, path, other->second));
                }
            }
        }
    }
    return all;
}

// The summary of a group compared with the first one.
std::string verdict_of(const record& r, const run_group& first, std::size_t comparisons) {
    const auto number = [&](const char* name) { return report::number_of(r, name); };
    const std::string name = report::text_of(r, "group");
    std::string text =
        fmt::format("- {}: {} of {} runs became unstable", name, report::whole(*number("unstable")),
                    report::whole(*number("runs")));
    const auto p = number("log_rank_p");
    if (!p) return text;
    const auto lives = first.lives();
    const double before = lab::survival_of(lives).back().share;
    const bool fewer = *number("survival") > before;
    const bool same = *number("survival") == before;
    // With several comparisons, a p-value below 0.05 / their number (Bonferroni) is significant.
    const auto all = static_cast<double>(comparisons);
    return text + fmt::format("; {} under {}, {} (log-rank p = {:.2g}{})",
                              same    ? "the same share as"
                              : fewer ? "fewer than"
                                      : "more than",
                              first.name,
                              *p * all < 0.05 ? "a significant difference" : "which can be chance",
                              *p,
                              comparisons < 2 ? "" : fmt::format(", {} comparisons", comparisons));
}

// The maximum of the losses in each of a few intervals of steps, so that no spike is lost.
void add_losses(record& to, const told_run& r) {
    constexpr std::size_t points = 400;
    report::list steps, losses;
    const std::size_t stride = std::max<std::size_t>(1, r.losses.size() / points);
    for (std::size_t i = 0; i < r.losses.size(); i += stride) {
        float most = r.losses[i];
        for (std::size_t k = i; k < std::min(i + stride, r.losses.size()); ++k) {
            most = r.losses[k] > most ? r.losses[k] : most;
        }
        steps.emplace_back(integer(i + 1));
        losses.emplace_back(std::isfinite(most) ? real(static_cast<double>(most)) : undefined());
    }
    to.emplace_back("interventions", to_list(r.interventions));
    to.emplace_back("loss_steps", std::move(steps));
    to.emplace_back("losses", std::move(losses));
    to.emplace_back("probes", r.probes);
}

int run_runs(const runs_options& o) {
    std::vector<std::string> paths;
    for (const std::string& folder : o.folders) {
        const std::size_t before = paths.size();
        find_runs(folder, 2, paths);
        if (paths.size() == before) {
            throw base::error(base::error_kind::input, "holds no run.json of mx train",
                              {folder, {}, {}});
        }
    }
    outputs to(o.out, paths);
    const lab::instability_rule rule{o.factor, static_cast<std::size_t>(o.window), 20};
    std::vector<told_run> runs;
    for (const std::string& path : paths) runs.push_back(read_run(path, rule));
    const std::vector<run_group> groups = groups_of(runs);

    report::document d;
    d.title = "Training runs compared";
    d.head = pages::document_head("mx.runs/1");
    d.head.emplace_back("rule", record{{"factor", real(rule.factor)},
                                       {"window", integer(rule.window)},
                                       {"least", integer(rule.least)}});
    report::section verdict{.heading = pages::verdict_heading};
    for (const run_group& g : groups) {
        const record row = group_record(g, groups.front());
        verdict.notes.push_back(verdict_of(row, groups.front(), groups.size() - 1));
        d.results.push_back(row);
    }
    report::list list;
    for (const told_run& r : runs) {
        record row{{"run", r.path},
                   {"group", r.group},
                   {"status", r.status},
                   {"steps", integer(r.losses.size())},
                   {"unstable_at", r.life.unstable ? integer(r.life.step) : undefined()},
                   {"late_loss", optional_real(r.late_loss)}};
        add_losses(row, r);
        list.emplace_back(std::move(row));
    }
    d.tail.emplace_back("runs", std::move(list));
    const std::vector<record> across = across_records(groups);
    if (!across.empty()) d.tail.emplace_back("across", report::list(across.begin(), across.end()));
    pages::runs_tables tables = pages::tables_of_runs({d.head, d.results, d.tail});
    d.sections = {std::move(tables.groups), std::move(tables.runs)};
    if (!across.empty()) {
        tables.across.notes = {
            "q of a run and g of the run of the first group which differs in nothing else, each "
            "at its own parameters, from dumps of the same step. This is what the code "
            "published with arXiv 2506.20752 logs as zeta_norm. It grows as the parameters part, "
            "whatever the precision; probes compare at the same parameters."};
        d.sections.push_back(std::move(tables.across));
    }
    d.sections.push_back(std::move(verdict));
    finish_with_page(to, d, o.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_runs(parser& cmd) {
    const auto o = std::make_shared<runs_options>();
    cmd.group("Input");
    cmd.add_option("FOLDER", o->folders,
                   "folders of mx train, or folders of these; runs with the same precision and "
                   "interventions form a group, and the others are compared with the first")
        ->required();
    cmd.group("Rule");
    cmd.add_option("--factor X", o->factor,
                   "a run is unstable at a loss above X times the median "
                   "(10)")
        ->in_range(1.0, 1e9);
    cmd.add_option("--window N", o->window, "number of losses in the median (100)")->not_negative();
    declare_outputs(cmd, o->out);
    cmd.group("Output");
    cmd.add_flag("-q,--quiet", o->quiet, "no table");
    cmd.description(
        "Compares runs of mx train: which became unstable and when, the share of stable runs of "
        "each group with its interval and a log-rank test, and gaps between the losses of pairs "
        "that differ in nothing else. If runs have dumps of the same step, it compares their "
        "gradients. The page has the curves and the results of probes.");
    cmd.examples(
        "mx runs run changed\n"
        "mx runs baseline/ quantized/ --html runs.html --json runs.json\n"
        "mx runs runs/ --factor 3 --window 50\n");
    return [o] { return run_runs(*o); };
}

}  // namespace mx::app
