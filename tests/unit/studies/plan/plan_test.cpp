// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/policy/judged_inputs.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/plan/ecosystems.hpp"
#include "libmx/studies/plan/plan.hpp"
#include "tests/catch.hpp"

using namespace mx::analysis;
using namespace mx::plan;
using mx::analysis::results_input;
namespace base = mx::base;
namespace report = mx::report;

namespace {

struct measurement {
    std::string tensor;
    std::string recipe;
    int elements;
    double bits;
    std::string rmse;
    std::string more{};
    std::string role = "weight";
    std::string dtype = "BF16";
};

results_input results(const std::vector<measurement>& all, const std::string& path = "r.json",
                      const std::string& file = "m") {
    std::string text =
        fmt::format(R"({{"schema":"mx.analysis/1","inputs":[{{"path":"{}","bytes":1}}],)"
                    R"("given":{{"command":"analyze","options":[]}},"results":[)",
                    file);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const measurement& m = all[i];
        text +=
            fmt::format(R"({}{{"file":"{}","tensor":"{}","dtype":"{}","shape":[2,{}],"role":"{}",)"
                        R"("recipe":"{}","elements":{},"nan":0,"inf":0,"rmse":{},"rms":1.0,)"
                        R"("bits_per_element":{}{}}})",
                        i == 0 ? "" : ",", file, m.tensor, m.dtype, m.elements / 2, m.role,
                        m.recipe, m.elements, m.rmse, m.bits, m.more);
    }
    return {path, text.size(), report::read_results(text + "]}", path)};
}

// A policy that keeps norms, recommends mxfp8 and rules nothing out.
const char* const open_policy = R"({"schema":"mx.policy/1","name":"open","results":[
    {"rule":"setting","setting":"least_axes","value":2},
    {"rule":"setting","setting":"whole_blocks","value":0},
    {"rule":"setting","setting":"scale_margin_db","value":0.5},
    {"rule":"setting","setting":"exceptions","value":0.5},
    {"rule":"setting","setting":"dominated","value":0.1},
    {"rule":"setting","setting":"dominant","value":0.5},
    {"rule":"setting","setting":"task_loss","value":0.01},
    {"rule":"keep","role":"norm","why":"gains"},
    {"rule":"candidate","role":"weight","recipe":"mxfp8","verdict":"safe"})";

candidates gathered_by(const std::string& rules, const candidate_request& request,
                       const std::vector<results_input>& inputs) {
    mx::policy::basis by;
    by.by = mx::policy::parse_policy(open_policy + rules + "]}", "open.json");
    const mx::policy::judged_model judged = mx::policy::judge_inputs(inputs, by);
    return gather_candidates(inputs, request, judged);
}

template <typename... Inputs>
candidates gathered_from(candidate_request request, Inputs... files) {
    std::vector<results_input> inputs;
    (inputs.push_back(std::move(files)), ...);
    if (request.recipes.empty()) request.recipes = {"*"};  // any that the policy names
    return gathered_by("", request, inputs);
}

std::vector<results_input> one_file(const std::vector<measurement>& all) {
    std::vector<results_input> inputs;
    inputs.push_back(results(all));
    return inputs;
}

candidates gathered(const std::vector<measurement>& all, const candidate_request& request = {}) {
    return gathered_from(request, results(all));
}

std::vector<std::string> recipes_of(const candidates& from, const plan& p) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < p.chosen.size(); ++i) {
        names.push_back(from.recipes[from.tensors[i].options[p.chosen[i]].recipe].name);
    }
    return names;
}

const std::vector<measurement> two = {
    {"a.weight", "mxfp8", 64, 8.25, "0.01"},
    {"a.weight", "mxfp4", 64, 4.25, "0.1"},
    {"b.weight", "mxfp8", 64, 8.25, "0.02"},
    {"b.weight", "mxfp4", 64, 4.25, "0.3"},
};

candidates random_candidates(std::mt19937_64& draw) {
    candidates from;
    from.recipes = {{"mxfp8", {}}, {"mxfp6", {}}, {"mxfp4", {}}};
    const std::size_t tensors = 1 + draw() % 6;
    for (std::size_t i = 0; i < tensors; ++i) {
        plan_tensor t;
        t.elements = 32 * (1 + draw() % 5);
        t.signal = static_cast<double>(t.elements);
        // Sums of different tensors are not equal: their order would be that of rounding.
        double error = static_cast<double>(draw() >> 11) * 0x1p-53;
        for (std::uint32_t r = 0; r < 3; ++r) {
            if (r > 0 && draw() % 8 == 0) continue;  // not measured
            t.options.push_back(
                {r, t.elements * (8 - 2 * r) + t.elements / 4, draw() % 10 == 0 ? 0.0 : error});
            error *= 1 + static_cast<double>(draw() % 8);  // ties too
        }
        from.tensors.push_back(std::move(t));
        // Alone, or with the tensor before it.
        if (i == 0 || draw() % 3 != 0) from.groups.emplace_back();
        from.groups.back().tensors.push_back(i);
        if (from.options_of(from.groups.back()).empty()) {
            from.groups.back().tensors.pop_back();
            from.groups.push_back({{}, {i}});
        }
    }
    return from;
}

// The best of all choices, ordered by `before`.
template <typename Allowed, typename Before>
std::optional<plan_totals> brute_force(const candidates& from, Allowed allowed, Before before) {
    std::optional<plan_totals> best;
    std::vector<std::vector<plan_option>> options;  // by group
    for (const plan_group& g : from.groups) options.push_back(from.options_of(g));
    std::vector<std::size_t> at(options.size(), 0);
    while (true) {
        plan_totals t;
        for (std::size_t i = 0; i < at.size(); ++i) {
            t.bits += options[i][at[i]].bits;
            t.error += options[i][at[i]].error;
        }
        if (allowed(t) && (!best || before(t, *best))) best = t;
        std::size_t k = 0;
        while (k < at.size() && ++at[k] == options[k].size()) at[k++] = 0;
        if (k == at.size()) return best;
    }
}

}  // namespace

TEST_CASE("a plan gives bits where they save the most error") {
    const candidates from = gathered(two);
    CHECK(from.elements() == 128);
    CHECK(from.signal() == Approx(128));
    const plan p = make_plan(from, {6.25, {}});
    CHECK(recipes_of(from, p) == std::vector<std::string>{"mxfp4", "mxfp8"});
    CHECK(p.totals.bits == 800);
    CHECK(p.totals.error == Approx(64 * (0.01 + 0.0004)));
    CHECK(p.totals.sqnr_db.value() == Approx(10 * std::log10(128 / p.totals.error)));
    CHECK(p.optimal);
    CHECK(p.bound == p.totals.error);
    REQUIRE(p.uniform.size() == 2);
    CHECK(!p.uniform[0].within);
    CHECK(p.best_uniform == 1);
    REQUIRE(p.curve.size() == 3);
    CHECK(p.curve[1].bits == 800);
    CHECK(p.curve[1].error == Approx(p.totals.error));

    // A minimum SQNR that this plan reaches exactly needs no more bits; a slightly higher one does.
    const double reached = *p.totals.sqnr_db;
    CHECK(make_plan(from, {{}, reached - 1e-6}).totals.bits == 800);
    CHECK(make_plan(from, {{}, reached + 1e-6}).totals.bits == 1056);
    CHECK(make_plan(from, {{}, 0}).totals.bits == 544);
}

TEST_CASE("plans are as good as trying everything") {
    std::mt19937_64 draw(3);
    int budgets = 0, floors = 0;
    for (int i = 0; i < 400; ++i) {
        const candidates from = random_candidates(draw);
        const double bits = 4.25 + 0.01 * static_cast<double>(draw() % 420);
        const double limit = std::floor(bits * static_cast<double>(from.elements()) + 1e-6);
        const auto want = brute_force(
            from, [&](const plan_totals& t) { return static_cast<double>(t.bits) <= limit; },
            [](const plan_totals& a, const plan_totals& b) {
                return a.error < b.error * (1 - 1e-12) ||
                       (a.error <= b.error * (1 + 1e-12) && a.bits < b.bits);
            });
        if (want) {
            const plan p = make_plan(from, {bits, {}});
            CHECK(p.optimal);
            CHECK(p.totals.error == Approx(want->error).epsilon(1e-12));
            CHECK(p.totals.bits == want->bits);
            ++budgets;
        } else {
            CHECK_THROWS_AS(make_plan(from, {bits, {}}), base::error);
        }
        const double floor = 5 + 0.1 * static_cast<double>(draw() % 300);
        const double error = from.signal() / std::pow(10.0, floor / 10);
        const auto fewest = brute_force(
            from, [&](const plan_totals& t) { return t.error <= error; },
            [](const plan_totals& a, const plan_totals& b) {
                return a.bits != b.bits ? a.bits < b.bits : a.error < b.error;
            });
        if (fewest) {
            const plan p = make_plan(from, {{}, floor});
            CHECK(p.optimal);
            CHECK(p.totals.bits == fewest->bits);
            CHECK(p.totals.error == Approx(fewest->error).epsilon(1e-12));
            CHECK(p.bound == static_cast<double>(fewest->bits));
            ++floors;
        } else {
            CHECK_THROWS_AS(make_plan(from, {{}, floor}), base::error);
        }
    }
    CHECK(budgets > 200);
    CHECK(floors > 200);
}

TEST_CASE("a plan that was not searched to the end says so") {
    std::mt19937_64 draw(5);
    int unproved = 0, worse = 0;
    for (int i = 0; i < 200; ++i) {
        candidates from = random_candidates(draw);
        for (plan_tensor& t : from.tensors) t.options.push_back({2, t.elements * 4, 100});
        const plan best = make_plan(from, {6.3, {}});
        const plan quick = make_plan(from, {6.3, {}}, 0);
        CHECK(best.optimal);
        CHECK(static_cast<double>(quick.totals.bits) <= 6.3 * static_cast<double>(from.elements()));
        CHECK(quick.totals.error >= best.totals.error * (1 - 1e-12));
        CHECK(quick.bound <= best.totals.error * (1 + 1e-12));
        if (quick.optimal) CHECK(quick.totals.error == Approx(best.totals.error).epsilon(1e-12));
        unproved += quick.optimal ? 0 : 1;
        worse += quick.totals.error > best.totals.error * (1 + 1e-9) ? 1 : 0;
    }
    CHECK(unproved > 10);
    CHECK(worse <= unproved);
}

TEST_CASE("goals out of reach name what can be reached") {
    const candidates from = gathered(two);
    CHECK_THROWS_WITH(make_plan(from, {4.0, {}}),
                      "--bits 4: the recipes to choose from take at least 4.25 bits per element "
                      "(544 bits for 128 "
                      "elements); most above the budget: 'a.weight' (4.25), 'b.weight' (4.25)");
    CHECK_THROWS_AS(make_plan(from, {-1.0, {}}), base::error);
    CHECK(make_plan(from, {1e300, {}}).totals.bits == 1056);
    CHECK(make_plan(from, {{}, -1e9}).totals.bits == 544);
    CHECK_THROWS_AS(make_plan(from, {{}, 1e9}), base::error);
    CHECK_THROWS_WITH(
        make_plan(from, {{}, 60.0}),
        "--sqnr 60: the recipes to choose from reach at most 36.02 dB; give more recipes, "
        "or --keep to leave tensors as they are stored");
}

TEST_CASE("a budget that is too small names the tensors that exceed it most") {
    // In bits beyond 9 an element: e 64 * 7, and d 32 * 7.
    std::vector<measurement> all = two;
    all.push_back({"c.weight", "mxfp8", 64, 8.25, "0.01"});
    all.push_back({"d.weight", "mxfp8", 32, 16.0, "0.01"});
    all.push_back({"e.weight", "mxfp8", 64, 16.0, "0.01"});
    const candidates from = gathered(all);
    CHECK_THROWS_WITH(make_plan(from, {9.0, {}}),
                      "--bits 9: the recipes to choose from take at least 9.05556 bits per element "
                      "(2608 bits for "
                      "288 elements); most above the budget: 'e.weight' (16), 'd.weight' (16)");
    CHECK_THROWS_WITH(
        make_plan(from, {4.0, {}}),
        "--bits 4: the recipes to choose from take at least 9.05556 bits per element (2608 bits "
        "for "
        "288 elements); most above the budget: 'e.weight' (16), 'd.weight' (16), 'c.weight' (8.25) "
        "and 2 more");
}

TEST_CASE("parts of a fused matrix get one recipe") {
    const std::vector<measurement> all = {
        {"l.q_proj.weight", "mxfp8", 64, 8.25, "0.01"},
        {"l.q_proj.weight", "mxfp4", 64, 4.25, "0.5"},
        {"l.o_proj.weight", "mxfp8", 64, 8.25, "0.02"},
        {"l.o_proj.weight", "mxfp4", 64, 4.25, "0.4"},
        {"l.v_proj.weight", "mxfp8", 32, 8.25, "0.01"},
        {"l.v_proj.weight", "mxfp4", 32, 4.25, "0.1"},
    };
    const candidates from = gathered(all);
    REQUIRE(from.groups.size() == 2);
    CHECK(from.groups[0].name == "l.{q,k,v}_proj.weight");
    CHECK(from.groups[0].tensors == std::vector<std::size_t>{0, 2});
    CHECK(from.groups[1].name == "l.o_proj.weight");
    const std::vector<plan_option> joint = from.options_of(from.groups[0]);
    REQUIRE(joint.size() == 2);
    CHECK(joint[0].bits == 96 * 4 + 24);
    CHECK(joint[0].error == Approx(64 * 0.25 + 32 * 0.01));
    // 256 bits more: q alone fits and saves most, q and v need 384, and o saves 10.2144.
    const double bits = (160 * 4.25 + 256) / 160;
    CHECK(recipes_of(from, make_plan(from, {bits, {}})) ==
          std::vector<std::string>{"mxfp4", "mxfp8", "mxfp4"});
    candidate_request request;
    request.separate = true;
    const candidates apart = gathered(all, request);
    CHECK(apart.groups.size() == 3);
    CHECK(recipes_of(apart, make_plan(apart, {bits, {}})) ==
          std::vector<std::string>{"mxfp8", "mxfp4", "mxfp4"});
    // A further group connects fused matrices, and takes their names' place.
    request.separate = false;
    request.groups = {"role"};
    const candidates one = gathered(all, request);
    REQUIRE(one.groups.size() == 1);
    CHECK(one.groups[0].tensors.size() == 3);
    CHECK(one.groups[0].name.find("weight") != std::string::npos);
    CHECK(one.groups[0].name != "l.{q,k,v}_proj.weight");
}

TEST_CASE("a fused matrix without a common recipe keeps its stored precision") {
    const std::vector<measurement> all = {{"l.gate_proj.weight", "mxfp8", 64, 8.25, "0.01"},
                                          {"l.up_proj.weight", "mxfp4", 64, 4.25, "0.1"}};
    const candidates from = gathered(all);
    REQUIRE(from.groups.size() == 1);
    CHECK(recipes_of(from, make_plan(from, {16.0, {}})) ==
          std::vector<std::string>{"stored", "stored"});
    CHECK(from.tensors[0].reason == "no recipe is a choice for all of its group");
    candidate_request request;
    request.rules = {parse_gate_rule("rmse<1")};
    CHECK_THROWS_WITH(gathered(all, request),
                      "group 'l.{gate,up}_proj.weight': no recipe is a choice for all of its 2 "
                      "tensors; give more recipes, --keep to leave tensors as they are stored, or "
                      "--separate to plan fused matrices apart");
}

TEST_CASE("a tensor may be left as it is stored") {
    candidate_request request;
    request.keep = true;
    const candidates from = gathered(two, request);
    CHECK(from.recipes.back().name == "stored");
    const plan p = make_plan(from, {{}, 60.0});
    CHECK(recipes_of(from, p) == std::vector<std::string>{"stored", "stored"});
    CHECK(p.totals.bits == 2048);
    CHECK(!p.totals.sqnr_db);
    const plan some = make_plan(from, {12.5, {}});
    CHECK(recipes_of(from, some) == std::vector<std::string>{"mxfp8", "stored"});
}

TEST_CASE("what the policy keeps is in no figure of a plan") {
    std::vector<measurement> all = two;
    all.push_back({"n", "mxfp8", 64, 8.25, "0.001", R"(,"clamp_rate":0.5)", "norm", "F32"});
    all.push_back({"n", "mxfp4", 64, 4.25, "0.002", R"(,"clamp_rate":0.5)", "norm", "F32"});
    candidate_request request;
    request.rules = {parse_gate_rule("norm:clamp_rate==0")};
    const candidates from = gathered(all, request);
    REQUIRE(from.tensors.size() == 2);
    REQUIRE(from.kept.size() == 1);
    CHECK(from.kept[0].of->tensor == "n");
    CHECK(from.kept[0].bits == 64 * 32);
    CHECK(from.kept[0].reason == "gains");
    CHECK(from.forbidden == 0);
    const plan p = make_plan(from, {6.25, {}});
    CHECK(recipes_of(from, p) == std::vector<std::string>{"mxfp4", "mxfp8"});
    CHECK(p.totals.bits == 800);
    CHECK(p.curve.front().bits == 544);
    all.back().dtype = all[4].dtype = "NOSUCH";
    const candidates unknown = gathered(all);
    REQUIRE(unknown.kept.size() == 1);
    CHECK_FALSE(unknown.kept[0].bits);
}

TEST_CASE("what the policy rules out on a tensor is no choice there") {
    std::vector<measurement> all = two;
    all[0].more = R"(,"clamp_rate":0.0)";
    all[1].more = R"(,"clamp_rate":0.5)";
    all[2].more = R"(,"clamp_rate":0.5)";
    all[3].more = R"(,"clamp_rate":0.5)";
    const std::string veto =
        R"(,{"rule":"veto","role":"","figure":"clamp_rate","evaluate":null,"no":0.01})";
    candidate_request request;
    request.recipes = {"*"};
    const candidates from = gathered_by(veto, request, one_file(all));
    CHECK(from.vetoed == 3);
    const plan p = make_plan(from, {12.125, {}});
    CHECK(recipes_of(from, p) == std::vector<std::string>{"mxfp8", "stored"});
    CHECK(from.tensors[0].options[0].is == mx::policy::verdict::safe);
    CHECK(from.tensors[1].reason == "it has 50.00 % of its elements clamped (limit 1.00 %)");
    CHECK(p.totals.bits == 64 * 8 + 16 + 64 * 16);
    CHECK_THROWS_WITH(make_plan(from, {8.0, {}}),
                      "--bits 8: the recipes to choose from take at least 12.125 bits per element "
                      "(1552 bits for 128 elements, of them 1024 bits of tensors without a "
                      "permitted recipe); most above the budget: 'b.weight' (16), 'a.weight' "
                      "(8.25)");
    // Without a goal the plan follows the policy's recommendation, which is the same here.
    request.recipes.clear();
    request.follow = true;
    const candidates followed = gathered_by(veto, request, one_file(all));
    CHECK(recipes_of(followed, make_plan(followed, {})) ==
          std::vector<std::string>{"mxfp8", "stored"});
}

TEST_CASE("without --recipe a plan chooses among what the policy names") {
    candidate_request request;
    const candidates from = gathered_by("", request, one_file(two));
    CHECK(recipes_of(from, make_plan(from, {9.0, {}})) ==
          std::vector<std::string>{"mxfp8", "mxfp8"});
    CHECK_THROWS_WITH(make_plan(from, {6.25, {}}),
                      "--bits 6.25: the recipes to choose from take at least 8.25 bits per element "
                      "(1056 bits for 128 elements); most above the budget: 'a.weight' (8.25), "
                      "'b.weight' (8.25)");
    // Missing measurements are not replaced by others.
    const std::vector<measurement> four = {two[1], two[3]};
    CHECK_THROWS_WITH(gathered_by("", request, one_file(four)),
                      "nothing to plan: no result is of a recipe that the policy open names for "
                      "its tensor; choose one with --recipe; measure it with: mx analyze m -r "
                      "mxfp8");
    request.follow = true;
    CHECK_THROWS_WITH(gathered_by("", request, one_file(four)),
                      "tensor 'a.weight': the policy open is undecided: mxfp8, which the policy "
                      "would choose, was not measured; measure it with: mx analyze m -r mxfp8");
}

TEST_CASE("rules forbid choices") {
    std::vector<measurement> all = two;
    all[0].more = R"(,"clamp_rate":0.0)";
    all[1].more = R"(,"clamp_rate":0.5)";
    all[2].more = R"(,"clamp_rate":0.0)";
    all[3].more = R"(,"clamp_rate":null)";
    candidate_request request;
    request.rules = {parse_gate_rule("a.*:clamp_rate==0")};
    const candidates from = gathered(all, request);
    CHECK(from.forbidden == 1);
    CHECK(recipes_of(from, make_plan(from, {6.25, {}})) ==
          std::vector<std::string>{"mxfp8", "mxfp4"});
    // An undefined figure forbids as well.
    request.rules = {parse_gate_rule("clamp_rate==0")};
    CHECK(gathered(all, request).forbidden == 2);
    request.rules = {parse_gate_rule("clamp_rate>7")};
    CHECK_THROWS_AS(gathered(all, request), base::error);
    // A tensor without an allowed recipe can keep its stored precision.
    request.keep = true;
    const candidates kept = gathered(all, request);
    CHECK(kept.signal() == Approx(128));
    CHECK(recipes_of(kept, make_plan(kept, {16.0, {}})) ==
          std::vector<std::string>{"stored", "stored"});
    request.keep = false;
    request.rules = {parse_gate_rule("norm:clamp_rate==0")};
    CHECK_THROWS_AS(gathered(all, request), base::error);
    request.rules = {parse_gate_rule("summary:clamp_rate==0")};
    CHECK_THROWS_AS(gathered(all, request), base::error);
    request.rules = {parse_gate_rule("nosuch==0")};
    CHECK_THROWS_AS(gathered(all, request), base::error);
}

TEST_CASE("what has no measured error is left out and said") {
    std::vector<measurement> all = two;
    all[1].rmse = "null";
    all.push_back({"c.weight", "mxfp8", 64, 8.25, "null"});
    const candidates from = gathered(all);
    CHECK(from.tensors.size() == 2);
    CHECK(from.tensors[0].options.size() == 1);
    REQUIRE(from.left_out.size() == 3);
    CHECK(from.left_out[0].tensor == "a.weight");
    CHECK(from.left_out[0].recipe == "mxfp4");
    CHECK(from.left_out[2].tensor == "c.weight");
    CHECK(from.left_out[2].recipe.empty());
    CHECK_THROWS_AS(gathered({all.back()}), base::error);

    // A recipe with scales that make elements NaN has its error over fewer of them.
    all = two;
    all[1].more = R"(,"poisoned":32)";
    const candidates poisoned = gathered(all);
    CHECK(poisoned.tensors[0].options.size() == 1);
    CHECK(poisoned.left_out[0].reason == "it poisons elements that another recipe keeps");
}

TEST_CASE("results of one model may come in several files") {
    const std::vector<measurement> eight = {two[0], two[2]};
    const std::vector<measurement> four = {two[1], two[3]};
    const candidates from =
        gathered_from({}, results(eight), results(four, "s.json"), results(four, "t.json"));
    CHECK(from.tensors.size() == 2);
    CHECK(from.tensors[0].options.size() == 2);
    CHECK(recipes_of(from, make_plan(from, {6.25, {}})) ==
          std::vector<std::string>{"mxfp4", "mxfp8"});

    std::vector<measurement> other = four;
    other[0].rmse = "0.11";
    CHECK_THROWS_WITH(gathered_from({}, results(four), results(other, "s.json")),
                      "s.json: tensor 'a.weight': mxfp4 has two results that differ; give results "
                      "of one run per recipe");
    CHECK_THROWS_WITH(gathered_from({}, results(four), results(eight, "s.json", "n")),
                      "tensor 'a.weight' is in 'm' and in 'n'; a plan is of one model: give "
                      "results of one, analysed under one path");
}

TEST_CASE("figures that cannot be are refused") {
    CHECK_THROWS_AS(gathered({{"a", "mxfp4", 64, 4.2512345, "0.1"}}), base::error);
    CHECK_THROWS_AS(gathered({{"a", "mxfp4", 64, -4.25, "0.1"}}), base::error);
    CHECK_THROWS_AS(gathered({{"a", "mxfp4", 64, 1e300, "0.1"}}), base::error);
    CHECK_THROWS_AS(gathered({{"a", "mxfp4", 64, 4.25, "1e300"}}), base::error);
    CHECK_THROWS_AS(gathered({{"a", "mxfp4", 64, 4.25, "0.1", R"(,"poisoned":65)"}}), base::error);
}

TEST_CASE("every preset that a library has is told in its words, and why it has not the others") {
    const auto check = [](const auto& list, const char* library) {
        const mx::policy::target& there = mx::policy::find_target(library);
        for (const mx::format::block_format& f : mx::format::block_formats) {
            const mx::policy::supported_format s = mx::policy::support_of(there, f.name);
            INFO(library << " " << f.name);
            const bool absent = s.is == mx::policy::support::absent;
            CHECK((find_words(list, f.name) == nullptr) == absent);
            CHECK((!absent || !s.note.empty()));
        }
    };
    check(torchao_list, "torchao");
    check(compressed_list, "compressed-tensors");
}

TEST_CASE("a plan is told in the words of other tools") {
    std::vector<measurement> all = {{"a.weight", "mxfp4:scale=even", 64, 4.25, "0.1"},
                                    {"b.weight", "nvfp4", 64, 4.5, "0.1"},
                                    {"c.weight", "mxfp6:scale=rceil", 64, 6.25, "0.1"},
                                    {"d.weight", "mxfp4:block=1x16", 64, 4.5, "0.1"},
                                    {"e.bias", "nvfp4", 64, 4.5, "0.1"}};
    const candidates from = gathered(all);
    const report::record m = mapping_of(from, make_plan(from, {16.0, {}}));
    const auto part = [&](const char* name) {
        return std::get<report::record>(*report::find(m, name));
    };
    const report::record torchao = part("torchao");
    const auto fqns = std::get<report::record>(*report::find(torchao, "fqn_to_config"));
    REQUIRE(fqns.size() == 4);
    CHECK(fqns[0].first == "a");
    CHECK(fqns[0].second == report::value(std::string("mxfp4:scale=even")));
    CHECK(fqns[3].second == report::value());
    const auto recipes = std::get<report::list>(*report::find(torchao, "recipes"));
    const auto first = std::get<report::record>(recipes[0]);
    const auto words = std::get<report::record>(*report::find(first, "words"));
    const auto arguments = std::get<report::record>(*report::find(words, "arguments"));
    CHECK(report::text_of(arguments, "weight_dtype") == "torch.float4_e2m1fn_x2");
    CHECK(report::text_of(arguments, "scaling_mode") == "ScaleCalculationMode.EVEN");

    const report::record compressed = part("compressed_tensors");
    const auto config = std::get<report::record>(*report::find(compressed, "quantization_config"));
    CHECK(report::text_of(config, "format") == "mixed-precision");
    const auto groups = std::get<report::record>(*report::find(config, "config_groups"));
    REQUIRE(groups.size() == 2);
    const auto group = std::get<report::record>(groups[1].second);
    CHECK(report::text_of(group, "format") == "nvfp4-pack-quantized");
    CHECK(*report::find(group, "targets") == report::value(report::list{std::string("b")}));
    CHECK(*report::find(config, "ignore") ==
          report::value(report::list{std::string("c"), std::string("d")}));
    const auto left = std::get<report::list>(*report::find(m, "not_mapped"));
    REQUIRE(left.size() == 1);
    CHECK(report::text_of(std::get<report::record>(left[0]), "tensor") == "e.bias");
}

namespace {

std::string refusal(const candidates& from, const plan& p, const char* tool) {
    try {
        return "exported: " + exported(from, p, tool).text;
    } catch (const base::error& e) {
        return e.what();
    }
}

report::record part_of(const report::record& r, const char* name) {
    return std::get<report::record>(*report::find(r, name));
}

}  // namespace

TEST_CASE("a plan is told in the names of llama.cpp") {
    candidate_request request;
    request.separate = true;
    const candidates from = gathered(
        {{"model.layers.0.self_attn.q_proj.weight", "mxfp4:dialect=ggml", 128, 4.25, "0.1"},
         {"model.layers.0.self_attn.k_proj.weight", "nvfp4:scale=single-level", 128, 4.5, "0.1"},
         {"model.embed_tokens.weight", "mxfp4", 128, 4.25, "0.1", "", "norm"},
         {"model.norm.weight", "mxfp4", 128, 4.25, "0.1", "", "norm"}},
        request);
    const plan p = make_plan(from, {16.0, {}});
    CHECK(exported(from, p, "llama.cpp").text ==
          "--tensor-type ^blk.0.attn_q.weight=mxfp4\n--tensor-type ^blk.0.attn_k.weight=nvfp4\n"
          "--tensor-type ^token_embd.weight=bf16\n");
    const report::record there = part_of(mapping_of(from, p), "llama_cpp");
    CHECK(*report::find(there, "tensor_types") ==
          report::value(report::record{{"blk.0.attn_q.weight", std::string("mxfp4")},
                                       {"blk.0.attn_k.weight", std::string("nvfp4")},
                                       {"token_embd.weight", std::string("bf16")}}));
}

TEST_CASE("llama.cpp refuses by name what it does not have") {
    const std::string has = "; llama.cpp has mxfp4 (scale=floor), nvfp4 (scale=single-level)";
    const auto of_one = [](const measurement& m) {
        const candidates from = gathered({m});
        return refusal(from, make_plan(from, {32.0, {}}), "llama.cpp");
    };
    const std::string q = "model.layers.0.self_attn.q_proj.weight";
    CHECK(of_one({q, "mxfp8", 64, 8.25, "0.1"}) ==
          "--export llama.cpp: '" + q + "' has mxfp8: it has no such format" + has);
    CHECK(of_one({q, "mxfp4:scale=even", 64, 4.25, "0.1"}) ==
          "--export llama.cpp: '" + q + "' has mxfp4:scale=even: it has no scale rule even" + has);
    // Rows of 32.
    CHECK(of_one({q, "nvfp4:scale=single-level", 64, 4.5, "0.1"}) ==
          "--export llama.cpp: '" + q +
              "' has nvfp4:scale=single-level: its rows of 32 are no multiple of 64" + has);
    CHECK(of_one({"h.0.attn.weight", "mxfp4", 64, 4.25, "0.1"}) ==
          "--export llama.cpp: 'h.0.attn.weight' has mxfp4: mx does not know its name there" + has);
    // As stored, in FP8.
    const candidates kept =
        gathered({{"lm_head.weight", "mxfp4", 64, 4.25, "0.1", "", "norm", "F8_E4M3"},
                  {q, "mxfp4", 64, 4.25, "0.1"}});
    CHECK(refusal(kept, make_plan(kept, {32.0, {}}), "llama.cpp") ==
          "--export llama.cpp: 'lm_head.weight' has stored: it has no type for F8_E4M3 as stored" +
              has);
    // Two experts of a stack.
    candidate_request request;
    request.separate = true;
    const candidates experts =
        gathered({{"model.layers.0.mlp.experts.0.up_proj.weight", "mxfp4", 128, 4.25, "0.1"},
                  {"model.layers.0.mlp.experts.1.up_proj.weight", "nvfp4:scale=single-level", 128,
                   4.5, "0.1"}},
                 request);
    CHECK(refusal(experts, make_plan(experts, {32.0, {}}), "llama.cpp") ==
          "--export llama.cpp: 'model.layers.0.mlp.experts.0.up_proj.weight' has mxfp4: experts of "
          "its stack have different types" +
              has);
}

TEST_CASE("a plan is told in the words of ModelOpt") {
    const candidates from = gathered({{"a.weight", "mxfp6:scale=rceil", 64, 6.25, "0.1"},
                                      {"b.weight", "nvfp4:dialect=modelopt", 64, 4.5, "0.1"},
                                      {"c.weight", "fp8_128x128", 64, 8.0, "0.1"},
                                      {"d.weight", "mxfp4:scale=even", 64, 4.25, "0.1"}});
    const plan p = make_plan(from, {16.0, {}});
    const report::record config = part_of(part_of(mapping_of(from, p), "modelopt"), "config");
    const auto pair = [](std::int64_t a, std::int64_t b) { return report::list{a, b}; };
    const auto entry = [](const char* name, report::value bits, report::record blocks) {
        return report::record{{"quantizer_name", std::string(name)},
                              {"cfg", report::record{{"num_bits", std::move(bits)},
                                                     {"block_sizes", std::move(blocks)}}}};
    };
    CHECK(*report::find(config, "quant_cfg") ==
          report::value(
              report::list{report::record{{"quantizer_name", std::string("*")}, {"enable", false}},
                           entry("a.weight_quantizer", pair(2, 3),
                                 {{"-1", std::int64_t{32}},
                                  {"type", std::string("dynamic")},
                                  {"scale_bits", pair(8, 0)}}),
                           entry("b.weight_quantizer", pair(2, 1),
                                 {{"-1", std::int64_t{16}},
                                  {"type", std::string("dynamic")},
                                  {"scale_bits", pair(4, 3)}}),
                           entry("c.weight_quantizer", pair(4, 3),
                                 {{"-1", std::int64_t{128}}, {"-2", std::int64_t{128}}})}));
    CHECK(refusal(from, p, "modelopt")
              .rfind("--export modelopt: 'd.weight' has mxfp4:scale=even: it "
                     "has no scale rule even; modelopt has mxfp8 "
                     "(scale=rceil), ",
                     0) == 0);
    CHECK(refusal(from, p, "torchao").rfind("--export torchao: 'c.weight' has fp8_128x128: ", 0) ==
          0);
    CHECK(
        refusal(from, p, "compressed-tensors")
            .rfind("--export compressed-tensors: 'a.weight' has mxfp6:scale=rceil: it has no 6-bit "
                   "floats",
                   0) == 0);
}

TEST_CASE("an export says where the tool computes other scales") {
    const candidates from = gathered({{"a.weight", "mxfp8:scale=rceil", 64, 8.25, "0.1"},
                                      {"b.weight", "mxfp4:scale=even", 64, 4.25, "0.1"}});
    const plan p = make_plan(from, {16.0, {}});
    const export_text e = exported(from, p, "compressed-tensors");
    REQUIRE(e.remarks.size() == 1);
    CHECK(e.remarks[0].rfind("--export compressed-tensors: mxfp8:scale=rceil: its scales are even",
                             0) == 0);
    CHECK(e.text.find("mixed-precision") != std::string::npos);
    CHECK(exported(from, p, "torchao").remarks.empty());
}
