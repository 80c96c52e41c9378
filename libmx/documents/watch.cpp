// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/clamp_zone.hpp"
#include "libmx/engine/checkpoints.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/cluster/diagnose.hpp"
#include "libmx/studies/diff/diff.hpp"

namespace mx::documents {
namespace {

using report::record;
using pair_key = std::pair<std::string, std::string>;  // tensor, recipe

// Members of the results of mx cluster and mx diff that a line keeps, and between them its own.
constexpr std::array place_members{"tensor", "role", "layer", "recipe"};
constexpr std::array own_members{"elements",
                                 "blocks",
                                 "nrmse",
                                 "sqnr_db",
                                 "clamp_rate",
                                 "overflow_rate",
                                 "underflow_rate",
                                 "collapsed_block_rate",
                                 "saturated_block_rate",
                                 "clamp_zone_block_rate"};
constexpr const char* distance_member = "clamp_zone_distance";
constexpr std::array course_members{distance_member,  "rises_into_zone", "falls_into_zone",
                                    "falling_blocks", "expected_in",     "expected_step"};
constexpr std::array drift_members{"values_changed",
                                   "nrmse",
                                   "mean_drift",
                                   "cosine",
                                   "scale_churn",
                                   "codes_moved",
                                   "codes_moved_at_equal_scale"};
// A rise is reported after this many checkpoints.
constexpr std::size_t rise_checkpoints = 3;

pair_key key_of(const record& r) {
    return {report::text_of(r, "tensor"), report::text_of(r, "recipe")};
}

// The result of a tensor under a recipe in a line.
const record* result_in(const record& line, const pair_key& key) {
    const auto* results = report::member<report::list>(line, "results");
    if (results == nullptr) return nullptr;
    for (const report::value& v : *results) {
        const auto* r = std::get_if<record>(&v);
        if (r != nullptr && key_of(*r) == key) return r;
    }
    return nullptr;
}

report::value copied(const record* from, std::string_view member) {
    const report::value* v = from == nullptr ? nullptr : report::find(*from, member);
    return v == nullptr ? report::value() : *v;
}

// The first remedy under which no block maximum overflows.
std::string remedy_of(const codec::recipe& r) {
    if (codec::clamp_zone_of(r).empty()) return {};
    for (const cluster::remedy& m : cluster::remedies_of(r)) {
        if (codec::clamp_zone_of(m.recipe).empty()) return m.change;
    }
    return std::string(engine::bf16_name);
}

// Of checkpoints with known, increasing steps.
diff::dump_labels labels_of(const std::vector<std::string>& names,
                            const std::vector<std::optional<std::uint64_t>>& steps) {
    diff::dump_labels labels{names, {}};
    for (const auto& step : steps) {
        if (!step || (!labels.steps.empty() && *step <= labels.steps.back())) {
            labels.steps.clear();
            break;
        }
        labels.steps.push_back(*step);
    }
    return labels;
}

std::optional<std::uint64_t> step_of(const record& line) {
    const auto step = report::number_of(line, "step");
    return step && *step >= 0 ? std::optional(static_cast<std::uint64_t>(*step)) : std::nullopt;
}

report::value step_value(const std::optional<std::uint64_t>& step) {
    return step && *step <= INT64_MAX ? pages::integer(*step) : pages::undefined();
}

// "in about 40 checkpoints", "in about 400 steps (near step 800)".
std::string when_of(const record& r) {
    const auto ahead = report::number_of(r, "expected_in");
    const auto step = report::number_of(r, "expected_step");
    if (!ahead) return "soon";
    if (step) return fmt::format("in about {:.0f} steps (near step {:.0f})", *ahead, *step);
    return fmt::format("in about {:.1f} checkpoints", *ahead);
}

// What is wrong, in words for the rules that are there without --rule.
std::string words_of(const analysis::gate_rule& rule, const record& r, double figure) {
    if (rule.metric == "saturated_block_rate") {
        return fmt::format("{} % of the blocks saturate", report::percent_text(figure));
    }
    if (rule.metric == "rises_into_zone") {
        return fmt::format(
            "its block maxima rise toward the clamp zone: on average {:.3f} octaves below it, and "
            "in "
            "it {}",
            -report::number_of(r, distance_member).value_or(0), when_of(r));
    }
    if (rule.metric == "falls_into_zone") {
        return fmt::format(
            "{:.0f} of {:.0f} block maxima will fall through a power of two into the clamp zone: "
            "the first {}",
            report::number_of(r, "falling_blocks").value_or(0),
            report::number_of(r, "blocks").value_or(0), when_of(r));
    }
    return fmt::format("{} is {}, which breaks '{}'", rule.metric,
                       report::significant_text(figure, 4), rule.text);
}

[[noreturn]] void refuse_metric(const analysis::gate_rule& rule, const record& r) {
    std::vector<std::string> names;
    for (const auto& [name, v] : r) {
        const auto* inner = std::get_if<record>(&v);
        if (inner == nullptr) {
            names.push_back(name);
        } else {
            for (const auto& member : *inner) names.push_back(name + "." + member.first);
        }
    }
    base::refuse("rule '{}': no result has a '{}'; did you mean '{}'?", base::printable(rule.text),
                 rule.metric, base::nearest(rule.metric, {names.begin(), names.end()}));
}

void set_member(record& r, std::string_view member, report::value v) {
    for (auto& [name, at] : r) {
        if (name != member) continue;
        at = std::move(v);
        return;
    }
}

// Notes when block maxima are expected in the zone, unless they are sooner: so much after the last
// of these steps, or checkpoints where there are none.
void expect(record& r, double ahead, const std::vector<std::uint64_t>& steps) {
    const auto sooner = report::number_of(r, "expected_in");
    if (sooner && *sooner <= ahead) return;
    set_member(r, "expected_in", ahead);
    if (!steps.empty()) {
        set_member(r, "expected_step", static_cast<double>(steps.back()) + ahead);
    }
}

std::vector<std::string> or_default(const std::vector<std::string>& given, const char* otherwise) {
    return given.empty() ? std::vector<std::string>{otherwise} : given;
}

}  // namespace

// What was measured of a checkpoint.
struct watcher::surveyed {
    cluster::cluster_report own;
    bool compared = false;
    std::vector<std::uint64_t> steps;  // of the one before and this one, where they are known
    std::map<pair_key, record> drifts;
    std::map<pair_key, diff::mean_maxima> maxima;
    std::map<pair_key, std::string> remedies;  // of tensors in danger
    std::span<const record> earlier;
    std::optional<std::uint64_t> step;
};

watcher::watcher(const watch_options& o) : options_(o), finder_(finder_of(o.roles)) {
    if (options_.globs.empty() && options_.roles.roles.empty()) options_.roles.roles = {"norm"};
    for (const std::string& role : options_.roles.roles) {
        base::row_named(engine::roles(), "role", role);
    }
    recipes_ = codec::parse_recipes(or_default(o.recipes, "mxfp8:scale=floor"));
    for (const codec::recipe& r : recipes_) remedies_.push_back(remedy_of(r));
    for (const std::string& text : o.rules) rules_.push_back(analysis::parse_gate_rule(text));
    for (const std::string& path : o.rule_files) {
        for (analysis::gate_rule& rule : analysis::read_gate_rules(path)) {
            rules_.push_back(std::move(rule));
        }
    }
    if (rules_.empty()) {
        for (const char* text : watch_rules) rules_.push_back(analysis::parse_gate_rule(text));
    }
    for (const analysis::gate_rule& rule : rules_) {
        if (rule.compare != nullptr && rule.subject != analysis::rule_subject::totals) continue;
        base::refuse(
            "rule '{}': mx watch has figures of tensors; rules about the policy and the "
            "summary are for mx gate",
            base::printable(rule.text));
    }
}

watcher::surveyed watcher::survey(const named_checkpoint& now, const named_checkpoint* before,
                                  const engine::run_control& control) const {
    surveyed s;
    s.compared = before != nullptr;
    s.step = engine::step_in(now.name);
    const io::reader* const of_now = now.dump.tensors.get();
    const std::vector<engine::tensor_ref> chosen = chosen_in(of_now);

    analysis::analysis_request own;
    own.recipes = recipes_;
    own.roles = finder_;
    own.norm_bias = options_.roles.norm_bias;
    s.own = cluster::diagnose(chosen, own, control);
    engine::require_any(analysis::has_elements(s.own.measured), s.own.skipped);
    for (const cluster::finding& f : s.own.findings) {
        s.remedies.emplace(pair_key(f.tensor.info().name, codec::to_string(f.recipe)),
                           f.remedies[f.chosen].change);
    }

    // Without the one before, the figures of a dump by itself are wanted all the same.
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what is compared is compared with it
    const named_checkpoint& with = s.compared ? *before : now;
    diff::diff_request pair;
    static_cast<engine::run_request&>(pair) = own;
    pair.paths = {with.name, now.name};
    pair.labels = labels_of(pair.paths, {engine::step_in(with.name), s.step});
    const std::array<const io::reader*, 2> readers{with.dump.tensors.get(), of_now};
    const diff::diff_result moved = diff::diff(readers, chosen, pair, control);
    s.steps = pair.labels.steps;
    for (const record& r : moved.results) s.drifts.emplace(key_of(r), r);
    for (const diff::norm_course& c : moved.norms) {
        s.maxima.emplace(pair_key(c.tensor, c.recipe), c.dumps.back());
    }
    return s;
}

record watcher::look(const named_checkpoint& now, const named_checkpoint* before,
                     std::span<const record> earlier, const engine::run_control& control) const {
    surveyed s = survey(now, before, control);
    s.earlier = earlier;
    std::vector<record> results;
    for (const record& r : s.own.results) {
        record kept;
        for (const char* name : place_members) kept.emplace_back(name, copied(&r, name));
        for (const char* name : own_members) kept.emplace_back(name, copied(&r, name));
        for (const char* name : course_members) kept.emplace_back(name, pages::undefined());
        add_rise(kept, s);
        add_fall(kept, s);
        add_drift(kept, s);
        results.push_back(std::move(kept));
    }
    record line = pages::document_head(std::string(watch_schema));
    line.emplace_back("checkpoint", now.name);
    line.emplace_back("step", step_value(s.step));
    line.emplace_back("previous",
                      earlier.empty() ? pages::undefined() : copied(&earlier.back(), "checkpoint"));
    line.emplace_back("compared", s.compared);
    line.emplace_back("inputs", input_list(now.dump.files));
    line.emplace_back("warnings", warnings_about(results, s));
    line.emplace_back("results", report::list(results.begin(), results.end()));
    line.emplace_back("skipped", skipped_list(s.own.skipped));
    return line;
}

// A file without such tensors is no checkpoint of this training.
std::vector<engine::tensor_ref> watcher::chosen_in(const io::reader* checkpoint) const {
    try {
        return with_roles(engine::select(std::span(&checkpoint, 1), options_.globs), options_.roles,
                          finder_);
    } catch (const base::error& e) {
        throw base::error(base::error_kind::input, e.message(), e.place());
    }
}

// Where the block maxima are, and whether those of three checkpoints rise toward the zone.
void watcher::add_rise(record& r, const surveyed& s) const {
    const auto own = s.maxima.find(key_of(r));
    if (own == s.maxima.end()) return;
    set_member(r, distance_member, own->second.distance);
    std::vector<double> distances;
    std::vector<std::string> names;
    std::vector<std::optional<std::uint64_t>> steps;
    for (const record& line : s.earlier) {
        const record* const then = result_in(line, own->first);
        const auto distance =
            then == nullptr ? std::nullopt : report::number_of(*then, distance_member);
        if (!distance) continue;
        distances.push_back(*distance);
        names.push_back(report::text_of(line, "checkpoint"));
        steps.push_back(step_of(line));
    }
    distances.push_back(own->second.distance);
    names.emplace_back();
    steps.push_back(s.step);
    if (distances.size() != rise_checkpoints) return;
    const diff::dump_labels labels = labels_of(names, steps);
    const auto rise = diff::forecast_of(distances, labels, 0);
    set_member(r, "rises_into_zone", rise.has_value());
    if (rise) expect(r, rise->ahead, labels.steps);
}

// The block maxima that are about to fall through a power of two.
void watcher::add_fall(record& r, const surveyed& s) const {
    const auto moved = s.drifts.find(key_of(r));
    if (!s.compared || moved == s.drifts.end()) return;
    const auto blocks = report::number_of(moved->second, "falling_blocks");
    if (!blocks) return;
    set_member(r, "falling_blocks", pages::integer(report::whole(*blocks)));
    set_member(r, "falls_into_zone", *blocks > 0);
    const auto falls = report::number_of(moved->second, "falls_left");
    if (!falls) return;
    const double pace = s.steps.empty() ? 1 : static_cast<double>(s.steps[1] - s.steps[0]);
    expect(r, *falls * pace, s.steps);
}

void watcher::add_drift(record& r, const surveyed& s) const {
    const auto found = s.drifts.find(key_of(r));
    const record* const moved = s.compared && found != s.drifts.end() ? &found->second : nullptr;
    record drift;
    for (const char* name : drift_members) drift.emplace_back(name, copied(moved, name));
    r.emplace_back("drift", std::move(drift));
}

report::list watcher::warnings_about(const std::vector<record>& results, const surveyed& s) const {
    report::list warnings;
    for (const analysis::gate_rule& rule : rules_) {
        bool any = false;
        for (const record& r : results) {
            if (!analysis::concerns(rule, r)) continue;
            any = true;
            const analysis::finding found = analysis::judge(rule, r);
            using outcome = analysis::finding::outcome;
            if (found.is == outcome::absent) refuse_metric(rule, r);
            if (found.is == outcome::no_number) {
                base::refuse("rule '{}': {} is not a number", base::printable(rule.text),
                             rule.metric);
            }
            if (found.is != outcome::broken) continue;
            const pair_key key = key_of(r);
            const auto measured = s.remedies.find(key);
            std::string remedy = measured == s.remedies.end() ? "" : measured->second;
            for (std::size_t i = 0; remedy.empty() && i < recipes_.size(); ++i) {
                if (codec::to_string(recipes_[i]) == key.second) remedy = remedies_[i];
            }
            const auto layer = report::number_of(r, "layer");
            std::string message =
                fmt::format("{}{} under {}: {}", base::printable(key.first),
                            layer ? fmt::format(" (layer {:.0f})", *layer) : "", key.second,
                            words_of(rule, r, found.figure.value_or(0)));
            if (!remedy.empty()) message += "; cheapest remedy: " + remedy;
            warnings.emplace_back(
                record{{"rule", rule.text},
                       {"tensor", key.first},
                       {"layer", copied(&r, "layer")},
                       {"recipe", key.second},
                       {"figure", *found.figure},
                       {"expected_in", copied(&r, "expected_in")},
                       {"expected_step", copied(&r, "expected_step")},
                       {"remedy", remedy.empty() ? pages::undefined() : report::value(remedy)},
                       {"message", std::move(message)}});
        }
        if (!any) {
            base::refuse(
                "rule '{}': it is about none of the tensors that are watched; --role and "
                "--tensor say which those are",
                base::printable(rule.text));
        }
    }
    return warnings;
}

}  // namespace mx::documents
