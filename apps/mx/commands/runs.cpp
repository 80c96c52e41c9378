// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "libmx/analysis/results_input.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/experiments/survival.hpp"
#include "libmx/lab/curves.hpp"
#include "libmx/lab/probe.hpp"
#include "libmx/lab/run_folder.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;
using report::record;

struct runs_options {
    std::vector<std::string> folders;
    std::string by;  // "": by the task of each run
    lab::instability_rule rule;
    std::optional<double> equal_within;
    output_options out;
    bool quiet = false;
};

// A run as described by its run.json.
struct loaded_run {
    std::string path, group, status;
    std::string precision;                        // and interventions: the beginning of the group
    std::map<std::string, std::string> settings;  // all others that may change a loss, but the seed
    std::string seed, copy;                       // copy: the nudge, and when
    std::vector<float> losses;
    std::vector<std::uint64_t> interventions;
    report::list probes;  // with their steps and losses
    experiments::lifetime life;
    std::optional<std::uint64_t> jump, excess;
    std::optional<double> rise;  // at the end, over the least loss
    bool ends_high = false, by_jump = false;

    // Of the last 30 % of the steps, as far as they follow all interventions of both runs.
    std::optional<double> late_loss(std::uint64_t after) const {
        std::size_t from = losses.size() * 7 / 10;
        from = std::max(from, static_cast<std::size_t>(after));
        double sum = 0;
        for (std::size_t i = from; i < losses.size(); ++i) sum += static_cast<double>(losses[i]);
        if (from >= losses.size() || !std::isfinite(sum)) return std::nullopt;
        return sum / static_cast<double>(losses.size() - from);
    }
    std::uint64_t last_intervention() const {
        return interventions.empty() ? 0 : std::ranges::max(interventions);
    }
};

// Runs that differ in seed, nudge, steps and probes alone.
struct run_group {
    std::string name;
    std::vector<const loaded_run*> runs;
    std::vector<experiments::lifetime> lives() const {
        std::vector<experiments::lifetime> all;
        for (const loaded_run* r : runs) all.push_back(r->life);
        return all;
    }
    std::size_t seeds() const {
        std::set<std::string> all;
        for (const loaded_run* r : runs) all.insert(r->seed);
        return all.size();
    }
    // Copies of a run are not independent: tests and intervals hold only for runs of other seeds.
    bool has_copies() const { return seeds() < runs.size(); }
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

struct gain_figures {
    const std::string& tensor;
    const record& figures;
};
report::value figure_of(const record& r, const char* name) {
    return optional_real(report::number_of(r, name));
}
constexpr std::array gain_figures_members = std::to_array<report::declared<gain_figures>>({
    {"tensor", "string", "", [](auto& g) { return g.tensor; }},
    {"least", "amount", "", [](auto& g) { return figure_of(g.figures, "least"); }},
    {"median", "amount", "", [](auto& g) { return figure_of(g.figures, "median"); }},
    {"largest", "amount", "", [](auto& g) { return figure_of(g.figures, "largest"); }},
    {"clamp_zone_from", "number?", "in parts of the power of two above; null: no zone",
     [](auto& g) { return figure_of(g.figures, "clamp_zone_from"); }},
});

struct loaded_probe {
    const loaded_run& run;  // as far as it was read
    const record& figures;

    // Those whose figures are all defined.
    report::list gains() const {
        report::list list;
        const auto* gains = report::member<record>(figures, "gains");
        for (const auto& [tensor, of] : gains == nullptr ? record() : *gains) {
            const auto* const r = std::get_if<record>(&of);
            const auto lacks = [&](const char* name) { return !report::number_of(*r, name); };
            if (r == nullptr || lacks("least") || lacks("median") || lacks("largest")) continue;
            list.emplace_back(report::written(gain_figures_members, {tensor, *r}));
        }
        return list;
    }
};
constexpr std::array loaded_probe_members = std::to_array<report::declared<loaded_probe>>({
    {"step", "ordinal", "", [](auto& p) { return p.run.losses.size(); }},
    {"loss", "number?", "",
     [](auto& p) { return optional_real(static_cast<double>(p.run.losses.back())); }},
    {"zeta", "amount?", "", [](auto& g) { return figure_of(g.figures, "zeta"); }},
    {"gains", "[#gains]", "magnitudes of the gains of a norm each",
     [](auto& p) { return p.gains(); }},
});

loaded_run read_run(const std::string& path, const runs_options& o) {
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
    loaded_run r;
    r.path = path;
    r.status = report::text_of(in.content.results.front(), "status");
    r.settings = {{"model", "proxy"}, {"stream", "mx"}};  // absent in runs of earlier versions
    for (const auto& [key, value] : *request) {
        const std::string text = report::text_of(*request, key);
        if (key == "precision") {
            r.precision = (text.empty() ? "fp32" : text) + r.precision;
        } else if (key.starts_with("at.")) {
            r.precision += fmt::format(" at {}", text);
            r.interventions.push_back(std::strtoull(text.c_str(), nullptr, 10));
        } else if (key == "seed" || key == "init-seed" || key == "data-seed") {
            if (!text.empty()) r.seed += fmt::format("{}={} ", key, text);
        } else if (key.starts_with("nudge")) {
            r.copy += text + " ";
        } else if (key != "steps" && !key.starts_with("probe")) {
            r.settings[key] = text;
        }
    }
    for (const report::value& v : *steps) {
        const auto* step = std::get_if<record>(&v);
        if (step == nullptr) damaged("has a step that is not an object");
        r.losses.push_back(static_cast<float>(report::number_of(*step, "loss").value_or(NAN)));
        if (const auto* probe = report::member<record>(*step, "probe")) {
            r.probes.emplace_back(report::written(loaded_probe_members, {r, *probe}));
        }
    }
    lab::instability_rule rule = o.rule;
    using kind = lab::instability_rule::kind;
    rule.by = o.by.empty()     ? lab::rule_for(r.settings["model"], r.settings["task"]).by
              : o.by == "jump" ? kind::jump
                               : kind::excess;
    const std::vector<float> judged = lab::judged_losses(r.losses, r.status == "diverged");
    r.jump = lab::first_jump(judged, rule);
    r.excess = lab::first_excess(judged, rule);
    r.by_jump = rule.by == kind::jump;
    const auto broke = r.by_jump ? r.jump : r.excess;
    r.life = {broke.value_or(r.losses.size()), broke.has_value()};
    r.rise = lab::rise_at_end(judged, rule);
    r.ends_high = r.rise.value_or(0) > rule.margin;
    return r;
}

// In order of first appearance. A group is named by its precision and interventions, and by the
// other settings that are not the same in all runs.
std::vector<run_group> groups_of(std::vector<loaded_run>& runs) {
    std::set<std::string> differ;
    for (const loaded_run& r : runs) {
        for (const auto& [key, value] : r.settings) {
            if (std::ranges::any_of(runs, [&, &k = key, &v = value](const loaded_run& other) {
                    const auto at = other.settings.find(k);
                    return at == other.settings.end() || at->second != v;
                })) {
                differ.insert(key);
            }
        }
    }
    // Settings that all runs of a model share are told by the model.
    const auto setting = [](const loaded_run& r, const std::string& key) {
        const auto at = r.settings.find(key);
        return at == r.settings.end() ? std::string() : at->second;
    };
    std::erase_if(differ, [&](const std::string& key) {
        std::map<std::string, std::string> by_model;
        return key != "model" && std::ranges::all_of(runs, [&](const loaded_run& r) {
                   const std::string value = setting(r, key);
                   return by_model.emplace(setting(r, "model"), value).first->second == value;
               });
    });
    std::vector<run_group> groups;
    for (loaded_run& r : runs) {
        r.group = r.precision;
        for (const std::string& key : differ) {
            const auto at = r.settings.find(key);
            if (at == r.settings.end()) continue;
            r.group += fmt::format(", {} {}", key, at->second.empty() ? "-" : at->second);
        }
        auto at = std::ranges::find(groups, r.group, &run_group::name);
        if (at == groups.end()) at = groups.insert(groups.end(), {r.group, {}});
        at->runs.push_back(&r);
    }
    return groups;
}

// The most steps that a stable run of each group has; 0: no stable runs have the same number.
std::size_t common_steps(const run_group& a, const run_group& b) {
    std::size_t most = 0;
    for (const loaded_run* r : a.runs) {
        const auto is_like_it = [&](const loaded_run* other) {
            return !other->life.unstable && other->losses.size() == r->losses.size();
        };
        if (is_like_it(r) && std::ranges::any_of(b.runs, is_like_it)) {
            most = std::max(most, r->losses.size());
        }
    }
    return most;
}

// Differences between the late losses of two groups that differ in precision and interventions
// alone, in runs of as many steps: one for each seed, the mean over its stable copies.
std::vector<double> differences_of(const run_group& g, const run_group& first) {
    struct sums {
        double loss[2] = {};
        std::size_t runs[2] = {};
    };
    std::map<std::string, sums> by_seed;
    if (&g == &first || g.runs.front()->settings != first.runs.front()->settings) return {};
    const std::size_t steps = common_steps(g, first);
    const std::uint64_t after =
        std::max(g.runs.front()->last_intervention(), first.runs.front()->last_intervention());
    for (const int side : {0, 1}) {
        for (const loaded_run* r : (side == 0 ? g : first).runs) {
            const auto late = r->late_loss(after);
            if (r->life.unstable || r->losses.size() != steps || !late) continue;
            by_seed[r->seed].loss[side] += *late;
            ++by_seed[r->seed].runs[side];
        }
    }
    std::vector<double> differences;
    for (const auto& [seed, s] : by_seed) {
        if (s.runs[0] == 0 || s.runs[1] == 0) continue;
        differences.push_back(s.loss[0] / static_cast<double>(s.runs[0]) -
                              s.loss[1] / static_cast<double>(s.runs[1]));
    }
    return differences;
}

struct curve_point {
    const experiments::survival_point& of;
    bool copies;
};
constexpr std::array curve_point_members = std::to_array<report::declared<curve_point>>({
    {"step", "count", "", [](auto& p) { return p.of.step; }},
    {"at_risk", "count", "", [](auto& p) { return p.of.at_risk; }},
    {"unstable", "count", "", [](auto& p) { return p.of.events; }},
    {"survival", "share", "", [](auto& p) { return p.of.share; }},
    {"low", "share?", "", [](auto& p) { return p.copies ? undefined() : real(p.of.low); }},
    {"high", "share?", "", [](auto& p) { return p.copies ? undefined() : real(p.of.high); }},
});

std::size_t unstable_in(const std::vector<experiments::lifetime>& all) {
    return static_cast<std::size_t>(std::ranges::count_if(all, &experiments::lifetime::unstable));
}

// A group beside the first one; `comparisons` are made in all.
struct compared_group {
    const run_group& g;
    const run_group& first;
    std::size_t comparisons;
    std::vector<experiments::lifetime> lives = g.lives(), of_first = first.lives();
    std::vector<experiments::survival_point> curve = experiments::survival_of(lives);
    bool copies = g.has_copies();
    bool comparable = &g != &first && !copies && !first.has_copies();
    std::optional<experiments::rank_test> test =
        comparable ? experiments::log_rank(of_first, lives) : std::nullopt;
    std::vector<double> differences = differences_of(g, first);
    std::optional<experiments::paired_gap> gap = experiments::gap_of(differences);
    std::optional<double> adjusted = {};  // of the test, by add_adjusted()

    template <typename Has>
    std::size_t count(Has has) const {
        return static_cast<std::size_t>(std::ranges::count_if(g.runs, has));
    }
};
constexpr std::array group_members = std::to_array<report::declared<compared_group>>({
    {"group", "string", "", [](auto& c) { return c.g.name; }},
    {"runs", "count", "", [](auto& c) { return c.g.runs.size(); }},
    {"seeds", "count", "less than runs: some are nudged copies of others",
     [](auto& c) { return c.g.seeds(); }},
    {"unstable", "count", "", [](auto& c) { return unstable_in(c.lives); }},
    {"jumps", "count", "runs with a jump",
     [](auto& c) { return c.count([](const loaded_run* x) { return x->jump.has_value(); }); }},
    {"excesses", "count", "runs with an excess",
     [](auto& c) { return c.count([](const loaded_run* x) { return x->excess.has_value(); }); }},
    {"high_ends", "count", "runs that end above their least loss",
     [](auto& c) { return c.count([](const loaded_run* x) { return x->ends_high; }); }},
    {"survival", "share", "share of stable runs", [](auto& c) { return c.curve.back().share; }},
    {"survival_low", "share?", "95 % interval; null with copies",
     [](auto& c) { return c.copies ? undefined() : real(c.curve.back().low); }},
    {"survival_high", "share?", "",
     [](auto& c) { return c.copies ? undefined() : real(c.curve.back().high); }},
    {"log_rank_chi_squared", "amount?", "against the first group",
     [](auto& c) { return c.test ? real(c.test->chi_squared) : undefined(); }},
    {"log_rank_p", "share?", "", [](auto& c) { return c.test ? real(c.test->p) : undefined(); }},
    {"detectable", "count?",
     "unstable runs of this group from which 80 % of tests find a difference; null if none",
     [](auto& c) {
         return c.comparable ? experiments::detectable(unstable_in(c.of_first), c.of_first.size(),
                                               c.lives.size(),
                                               0.05 / static_cast<double>(c.comparisons))
                             : std::nullopt;
     }},
    {"pairs", "count", "seeds with stable runs in this group and the first",
     [](auto& c) { return c.differences.size(); }},
    {"gap", "number?", "mean difference of the late loss to it",
     [](auto& c) { return c.gap ? real(c.gap->mean) : undefined(); }},
    {"gap_low", "number?", "95 % interval",
     [](auto& c) { return c.gap ? real(c.gap->low) : undefined(); }},
    {"gap_high", "number?", "", [](auto& c) { return c.gap ? real(c.gap->high) : undefined(); }},
    {"survival_curve", "[#point]", "",
     [](auto& c) {
         return to_list(c.curve, [&](const experiments::survival_point& p) {
             return report::written(curve_point_members, {p, c.copies});
         });
     }},
    {"log_rank_p_adjusted", "share?", "by Holm's method for the groups",
     [](auto& c) { return c.adjusted; }},
});

// The p-values adjusted for the number of comparisons.
void add_adjusted(std::vector<compared_group>& groups) {
    std::vector<double> p;
    for (const compared_group& c : groups) {
        if (c.test) p.push_back(c.test->p);
    }
    const std::vector<double> adjusted = experiments::holm(p);
    std::size_t at = 0;
    for (compared_group& c : groups) {
        if (c.test) c.adjusted = adjusted[at++];
    }
}

// The dumps in a run's folder, by step.
std::map<std::uint64_t, std::string> dumps_of(const loaded_run& r) {
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

// The gradients of two runs at one step, each at its own parameters, as in the code published with
// arXiv 2506.20752.
struct across_runs {
    const loaded_run &a, &b;
    std::uint64_t step;
    std::optional<lab::gradient_measures> m;
};
constexpr std::array across_members = std::to_array<report::declared<across_runs>>({
    {"run", "string", "", [](auto& x) { return x.a.path; }},
    {"against", "string", "", [](auto& x) { return x.b.path; }},
    {"step", "ordinal", "", [](auto& x) { return x.step; }},
    {"zeta_norm", "number?", "|q - g|^2 / |g|^2",
     [](auto& x) { return x.m ? real(x.m->zeta * x.m->zeta) : undefined(); }},
    {"rhs", "number?", "2 / zeta_norm",
     [](auto&
            x) { return x.m && x.m->zeta > 0 ? real(2 / (x.m->zeta * x.m->zeta)) : undefined(); }},
    {"cosine", "number?", "", [](auto& x) { return x.m ? real(x.m->cosine) : undefined(); }},
    {"norm_ratio", "number?", "|q| / |g|",
     [](auto& x) { return x.m ? real(x.m->norm_ratio) : undefined(); }},
});

// Frozen norm biases count as zeros.
record across_record(const loaded_run& a, const loaded_run& b, std::uint64_t step,
                     const std::string& of_a, const std::string& of_b) {
    const lab::tensor_file q(of_a), g(of_b);
    lab::gradient_sums sums;
    for (const std::string& name : g.names()) {
        if (name.rfind("grad.", 0) != 0) continue;
        sums.add(q.read(name, g.info(name).shape), g.read(name));
    }
    return report::written(across_members, {a, b, step, sums.measures()});
}

std::vector<record> across_records(const std::vector<run_group>& groups) {
    std::vector<record> all;
    for (const loaded_run* b : groups.front().runs) {
        const auto of_b = dumps_of(*b);
        if (of_b.empty()) continue;
        for (const run_group& g : groups) {
            for (const loaded_run* a : g.runs) {
                if (&g == &groups.front() || a->settings != b->settings || a->seed != b->seed ||
                    a->copy != b->copy) {
                    continue;
                }
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

// What is known about the loss of a group beside the first one's, given the margin within which
// they count as equal.
std::string equality_of(const record& r, const run_group& first, double margin) {
    const auto low = report::number_of(r, "gap_low"), high = report::number_of(r, "gap_high");
    if (!low || !high) return "; equality of losses cannot be tested: fewer than two pairs";
    const bool equal = -margin < *low && *high < margin;
    return fmt::format("; {} {} (95 %: {:.3g} to {:.3g}, margin {:g})",
                       equal              ? "a loss equal to that of"
                       : *low * *high > 0 ? "a loss that differs from that of"
                                          : "equality of losses cannot be tested against",
                       first.name, *low, *high, margin);
}

// The summary of a group compared with the first one.
std::string verdict_of(const record& r, const run_group& g, const run_group& first,
                       std::size_t comparisons, std::optional<double> margin) {
    const auto number = [&](const char* name) { return report::number_of(r, name); };
    std::string text = fmt::format("{}: {} of {} {} became unstable", g.name,
                                   report::whole(*number("unstable")), g.runs.size(),
                                   !g.has_copies()  ? "runs"
                                   : g.seeds() == 1 ? "copies of one run"
                                                    : fmt::format("copies of {} runs", g.seeds()));
    if (*number("high_ends") > 0) {
        text +=
            fmt::format(", {} ended above their least loss", report::whole(*number("high_ends")));
    }
    const auto p = number("log_rank_p_adjusted");
    if (p) {
        const double before = experiments::survival_of(first.lives()).back().share;
        text += fmt::format(
            "; {} under {}, {} (log-rank p = {:.2g}{})",
            *number("survival") == before  ? "the same share as"
            : *number("survival") > before ? "fewer than"
                                           : "more than",
            first.name, *p < 0.05 ? "a significant difference" : "which can be chance", *p,
            comparisons < 2 ? "" : fmt::format(", adjusted for {} comparisons", comparisons));
    }
    if (&g == &first) return text;
    if (g.has_copies() || first.has_copies()) {
        text += "; copies of one run are not independent, so there is no test";
    } else if (const auto least = number("detectable"); !p || *p >= 0.05) {
        text += least ? fmt::format("; a test of so many runs has 80 % power from {} of {} on",
                                    report::whole(*least), g.runs.size())
                      : "; too few runs for a test with 80 % power";
    }
    return margin ? text + equality_of(r, first, *margin) : text;
}

// The first step and the maximum of the losses of each of a few intervals of steps, so that no
// spike is lost.
struct loss_peak {
    std::size_t step;
    float most;
};
std::vector<loss_peak> peaks_of(const loaded_run& r) {
    constexpr std::size_t points = 400;
    std::vector<loss_peak> peaks;
    const std::size_t stride = std::max<std::size_t>(1, r.losses.size() / points);
    for (std::size_t i = 0; i < r.losses.size(); i += stride) {
        float most = r.losses[i];
        for (std::size_t k = i; k < std::min(i + stride, r.losses.size()); ++k) {
            most = r.losses[k] > most ? r.losses[k] : most;
        }
        peaks.push_back({i + 1, most});
    }
    return peaks;
}

constexpr std::array run_row_members = std::to_array<report::declared<loaded_run>>({
    {"run", "string", "", [](auto& r) { return r.path; }},
    {"group", "string", "", [](auto& r) { return r.group; }},
    {"status", "complete|stopped|diverged", "", [](auto& r) { return r.status; }},
    {"steps", "count", "", [](auto& r) { return r.losses.size(); }},
    {"unstable_at", "count?", "",
     [](auto& r) { return r.life.unstable ? integer(r.life.step) : undefined(); }},
    {"jump_at", "count?", "", [](auto& r) { return r.jump; }},
    {"excess_at", "count?", "", [](auto& r) { return r.excess; }},
    {"rise_at_end", "number?",
     "share by which the mean of the last tenth exceeds the least mean",
     [](auto& r) { return optional_real(r.rise); }},
    {"late_loss", "number?",
     "mean over the last 30 % of the steps, as far as they follow all interventions",
     [](auto& r) { return optional_real(r.late_loss(r.last_intervention())); }},
    {"interventions", "[count]", "updates after which something changed",
     [](auto& r) { return to_list(r.interventions); }},
    {"loss_steps", "[ordinal]", "first steps of stretches",
     [](auto& r) {
         return to_list(peaks_of(r), [](const loss_peak& p) { return integer(p.step); });
     }},
    {"losses", "[number?]", "the largest loss of each stretch; null: not finite",
     [](auto& r) {
         return to_list(peaks_of(r), [](const loss_peak& p) {
             return report::finite_or_null(static_cast<double>(p.most));
         });
     }},
    {"probes", "[#probe]", "a probe each", [](auto& r) { return r.probes; }},
});

struct rule_in_use {
    const char* by;
    const lab::instability_rule& of;
};
constexpr std::array rule_in_use_members = std::to_array<report::declared<rule_in_use>>({
    {"by", "task|jump|excess",
     "what makes a run unstable; task: a jump in runs of the proxy's task of the paper, an excess "
     "in others",
     [](auto& r) { return r.by; }},
    {"factor", "amount", "jump: a loss of so many medians", [](auto& r) { return r.of.factor; }},
    {"window", "count", "losses that the median is of", [](auto& r) { return r.of.window; }},
    {"burn_in", "count", "steps that no rule judges", [](auto& r) { return r.of.burn_in; }},
    {"running", "count", "excess: losses in a row", [](auto& r) { return r.of.running; }},
    {"spread", "amount", "excess: in deviations", [](auto& r) { return r.of.spread; }},
    {"least_excess", "amount", "excess: share of the median",
     [](auto& r) { return r.of.least_excess; }},
    {"margin", "amount", "high end: share of the least mean", [](auto& r) { return r.of.margin; }},
});

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
    std::vector<loaded_run> runs;
    for (const std::string& path : paths) runs.push_back(read_run(path, o));
    const std::vector<run_group> groups = groups_of(runs);

    report::document d;
    d.title = "Training runs compared";
    d.head = pages::document_head("mx.runs/1");
    const auto judged_by = [&](bool jumps) {
        return std::ranges::all_of(runs, [&](const loaded_run& r) { return r.by_jump == jumps; });
    };
    const char* const by = judged_by(true) ? "jump" : judged_by(false) ? "excess" : "task";
    d.head.emplace_back("rule", report::written(rule_in_use_members, {by, o.rule}));
    std::vector<std::string> verdict;
    const std::size_t comparisons = groups.size() - 1;
    std::vector<compared_group> compared;
    for (const run_group& g : groups) compared.push_back({g, groups.front(), comparisons});
    add_adjusted(compared);
    std::vector<record> rows;
    for (const compared_group& c : compared) rows.push_back(report::written(group_members, c));
    for (std::size_t i = 0; i < groups.size(); ++i) {
        verdict.push_back(
            verdict_of(rows[i], groups[i], groups.front(), comparisons, o.equal_within));
    }
    d.results = rows;
    d.tail.emplace_back("runs", report::listed(run_row_members, runs));
    const std::vector<record> across = across_records(groups);
    if (!across.empty()) d.tail.emplace_back("across", report::list(across.begin(), across.end()));
    finish_with_page(to, d, verdict, o.quiet);
    return exit_code::fine;
}

}  // namespace

report::document_schema runs_schema() {
    return report::document_schema("mx.runs/1", "mx runs", "Training runs compared.")
        .member({"rule", "#rule", "when a run is unstable"})
        .member({"results", "[#group]",
                 "a group each: runs that differ in seed, nudge, steps and probes alone"})
        .member({"runs", "[#run]", "a run each"})
        .member({"across", "[#across]",
                 "gradients of two runs at one step, each at its own parameters", false})
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .define("rule", rule_in_use_members)
        .define("group", group_members)
        .define("point", curve_point_members)
        .define("run", run_row_members)
        .define("probe", loaded_probe_members)
        .define("gains", gain_figures_members)
        .define("across", across_members);
}

runner declare_runs(parser& cmd) {
    const auto o = std::make_shared<runs_options>();
    cmd.group("Input");
    cmd.add_option("FOLDER", o->folders,
                   "folders of mx train, or folders of these; runs that differ in seed, nudge, "
                   "steps and probes alone form a group, and the others are compared with the "
                   "first")
        ->required();
    cmd.group("Rule");
    cmd.add_option("--by RULE", o->by,
                   "which instability counts: jump, or excess (jump for the proxy's task of the "
                   "paper, excess for the others)")
        ->one_of({"jump", "excess"});
    cmd.add_option("--factor X", o->rule.factor,
                   "jump: a loss above X times the median of those before it (10)")
        ->in_range(1.0, 1e9);
    cmd.add_option("--running N", o->rule.running,
                   "excess: most of N losses in a row above a limit over that median (20)")
        ->in_range(1, 1 << 30);
    cmd.add_option("--spread X", o->rule.spread,
                   "that limit is X standard deviations above it, (3)")
        ->in_range(0.0, 1e9);
    cmd.add_option("--least-excess X", o->rule.least_excess, "but at least this share of it (0.05)")
        ->in_range(0.0, 1e9);
    cmd.add_option("--margin X", o->rule.margin,
                   "high end: the mean of the last tenth exceeds the least mean of a tenth by "
                   "this share (0.1)")
        ->in_range(0.0, 1e9);
    cmd.add_option("--window N", o->rule.window, "number of losses in the median (100)")
        ->in_range(1, 1 << 30);
    cmd.add_option("--burn-in N", o->rule.burn_in, "steps that no rule judges (20)")
        ->in_range(0, 1 << 30);
    cmd.group("Comparison");
    cmd.add_option("--equal-within X", o->equal_within,
                   "whether losses are equal: the 95 % interval of their gap lies within X, "
                   "chosen before the runs")
        ->in_range(0.0, 1e9);
    declare_outputs(cmd, o->out);
    declare_quiet(cmd, o->quiet);
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
