// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
constexpr std::array place_members = std::to_array<report::member_type>({
    {"tensor", "@members#tensor", ""},
    {"role", "@members#role", ""},
    {"layer", "@members#layer", ""},
    {"recipe", "string", ""},
});
constexpr std::array own_members = std::to_array<report::member_type>({
    {"elements", "count", ""},
    {"blocks", "count", ""},
    {"nrmse", "@members#nrmse", ""},
    {"sqnr_db", "@members#sqnr_db", ""},
    {"clamp_rate", "@members#clamp_rate", ""},
    {"overflow_rate", "@members#overflow_rate", ""},
    {"underflow_rate", "@members#underflow_rate", ""},
    {"collapsed_block_rate", "@members#collapsed_block_rate", ""},
    {"saturated_block_rate", "@members#saturated_block_rate", ""},
    {"clamp_zone_block_rate", "share?", "blocks whose maximum lies where the recipe clamps"},
});
constexpr const char* distance_member = "clamp_zone_distance";
constexpr report::member_type expected_in{
    "expected_in", "amount?",
    "steps (checkpoints, where steps are unknown) until block maxima are in the clamp zone"};
constexpr report::member_type expected_step{"expected_step", "amount?", "the step of that"};
constexpr std::array course_members = std::to_array<report::member_type>({
    {distance_member, "number?",
     "mean of log2(mantissa of the maximum / lower edge of the clamp zone); below 0: not there "
     "yet; norms only"},
    {"rises_into_zone", "boolean?",
     "over three checkpoints the distance shrank each time, on a line that reaches the zone within "
     "ten times the steps that were seen; null: there are fewer"},
    {"falls_into_zone", "boolean?",
     "a block maximum is about to fall through a power of two into the zone of the binade below; "
     "null: not compared"},
    {"falling_blocks", "count?", "how many are, within three more falls like the last one"},
    expected_in,
    expected_step,
});
constexpr std::array drift_members = std::to_array<report::member_type>({
    {"values_changed", "share?", ""},
    {"nrmse", "amount?", ""},
    {"mean_drift", "number?", ""},
    {"cosine", "number?", ""},
    {"scale_churn", "share?", ""},
    {"codes_moved", "share?", ""},
    {"codes_moved_at_equal_scale", "share?", ""},
});
constexpr report::member_type drift_member{
    "drift", "#drift", "from the checkpoint before to this one, as mx diff has it"};
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

// A rule and a result that breaks it.
struct broken_rule {
    const std::string& rule;
    const record& by;
    double figure;
    const std::string &remedy, &message;
};
constexpr std::array warning_members = std::to_array<report::declared<broken_rule>>({
    {"rule", "string", "", [](auto& w) { return w.rule; }},
    {"tensor", "@members#tensor", "", [](auto& w) { return copied(&w.by, "tensor"); }},
    {"layer", "@members#layer", "", [](auto& w) { return copied(&w.by, "layer"); }},
    {"recipe", "string", "", [](auto& w) { return copied(&w.by, "recipe"); }},
    {"figure", "number", "what the rule is about; true is 1", [](auto& w) { return w.figure; }},
    {expected_in.name, expected_in.type, expected_in.text,
     [](auto& w) { return copied(&w.by, expected_in.name); }},
    {expected_step.name, expected_step.type, expected_step.text,
     [](auto& w) { return copied(&w.by, expected_step.name); }},
    {"remedy", "string?", "the cheapest change of the recipe that takes the reason away, or bf16",
     [](auto& w) { return w.remedy.empty() ? pages::undefined() : report::value(w.remedy); }},
    {"message", "string", "all of that in a sentence", [](auto& w) { return w.message; }},
});

struct watched_checkpoint {
    const std::string& name;
    report::value step, previous;
    bool compared;
    report::list inputs, warnings, results, skipped;
};
constexpr std::array line_members = std::to_array<report::declared<watched_checkpoint>>({
    {"checkpoint", "string", "its name in the directory, or its path as given",
     [](auto& c) { return c.name; }},
    {"step", "count?", "the last number in its name", [](auto& c) { return c.step; }},
    {"previous", "string?", "the checkpoint before it in the log, by the numbers in their names",
     [](auto& c) { return c.previous; }},
    {"compared", "boolean", "that one was still there, and was compared with",
     [](auto& c) { return c.compared; }},
    {"inputs", "[@common#input]", "files of the checkpoint", [](auto& c) { return c.inputs; }},
    {"warnings", "[#warning]", "a rule and a result that breaks it each",
     [](auto& c) { return c.warnings; }},
    {"results", "[#result]", "a tensor under a recipe each", [](auto& c) { return c.results; }},
    {"skipped", "[@common#skipped]", "what was left out, and why",
     [](auto& c) { return c.skipped; }},
});

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
std::string failure_text(const analysis::gate_rule& rule, const record& r, double figure) {
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
        for (const auto& m : place_members) kept.emplace_back(m.name, copied(&r, m.name));
        for (const auto& m : own_members) kept.emplace_back(m.name, copied(&r, m.name));
        for (const auto& m : course_members) kept.emplace_back(m.name, pages::undefined());
        add_rise(kept, s);
        add_fall(kept, s);
        add_drift(kept, s);
        results.push_back(std::move(kept));
    }
    record line = pages::document_head(std::string(watch_schema));
    report::append(line, line_members,
                   {now.name, step_value(s.step),
                    earlier.empty() ? pages::undefined() : copied(&earlier.back(), "checkpoint"),
                    s.compared, input_list(now.dump.files), warnings_about(results, s),
                    report::list(results.begin(), results.end()), skipped_list(s.own.skipped)});
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
    for (const auto& m : drift_members) drift.emplace_back(m.name, copied(moved, m.name));
    r.emplace_back(drift_member.name, std::move(drift));
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
                            failure_text(rule, r, found.figure.value_or(0)));
            if (!remedy.empty()) message += "; cheapest remedy: " + remedy;
            warnings.emplace_back(
                report::written(warning_members, {rule.text, r, *found.figure, remedy, message}));
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

report::document_schema watch_line_schema() {
    return report::document_schema(watch_schema, "A line of mx watch",
                                   "A checkpoint: its figures, what moved since the one before, "
                                   "and which rules it breaks.")
        .members(line_members)
        .define("warning", warning_members)
        .define("result", report::member_list()
                              .add(place_members)
                              .add(own_members)
                              .add(course_members)
                              .add(drift_member))
        .define("drift", drift_members);
}

}  // namespace mx::documents
