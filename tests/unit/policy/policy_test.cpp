// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/policy.hpp"

#include "libmx/base/status.hpp"
#include "libmx/policy/measured_model.hpp"
#include "libmx/policy/scores.hpp"
#include "libmx/report/writers.hpp"
#include "tests/catch.hpp"
#include "tests/unit/policy/model.hpp"

using namespace mx;
using namespace mx::policy;
using namespace mx::policy::testing;

namespace {

std::string json_of(const mx::policy::policy& p) {
    std::string out;
    report::write_json(document_of(p), {}, [&](std::string_view text) { out += text; });
    return out;
}

mx::policy::policy with_rules(const std::string& rules) {
    return parse_policy(R"({"schema": "mx.policy/1", "name": "ours", "extends": "inference",
                           "results": [)" +
                            rules + "]}",
                        "ours.json");
}

std::string refusal(const std::string& rules) {
    try {
        with_rules(rules);
    } catch (const base::error& e) {
        CHECK(e.kind() == base::error_kind::input);
        return e.what();
    }
    return {};
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("every rule of the named policies says why, and where that is from") {
    for (const std::string_view name : policy_names()) {
        const mx::policy::policy p = find_policy(name);
        CHECK(p.name == name);
        CHECK(!p.version.empty());
        for (const rule& r : p.rules) {
            CAPTURE(r.role, r.recipe_text, r.setting);
            CHECK(!r.why.empty());
            CHECK(!r.source.empty());
            if (r.is == rule_kind::veto) CHECK((r.no || r.evaluate));
        }
        // Each class with candidates has a safe one.
        for (const char* role : {"weight", "activation"}) {
            const auto all = p.candidates(role);
            CHECK(std::any_of(all.begin(), all.end(),
                              [](const rule* r) { return r->at_best == verdict::safe; }));
        }
    }
    CHECK_THROWS_AS(find_policy("trainings"), base::error);
}

TEST_CASE("a policy as it is printed reads back as itself") {
    for (const std::string_view name : policy_names()) {
        const mx::policy::policy p = find_policy(name);
        const std::string text = json_of(p);
        const mx::policy::policy again = parse_policy(text, "printed.json");
        CHECK(json_of(again) == text);
        CHECK(again.rules.size() == p.rules.size());
        std::string table;
        report::write_table(document_of(p), {}, [&](std::string_view t) { table += t; });
        CHECK(has(table, "arXiv 2506.08027"));
        CHECK(has(table, "evaluation"));
    }
}

TEST_CASE("a policy on a target says which of its recipes that has") {
    const mx::policy::policy p = find_policy("inference");
    const auto there = [&](const char* target, std::string_view recipe) {
        const report::document d = document_of(p, find_target(target));
        for (const report::record& r : d.results) {
            if (report::text_of(r, "recipe") != recipe ||
                report::text_of(r, "rule") != "candidate") {
                continue;
            }
            return report::text_of(r, "on_target");
        }
        return std::string("no such candidate");
    };
    CHECK(there("any", "nvfp4").empty());
    CHECK(there("b200", "mxfp8:scale=rceil") == "native");
    CHECK(there("b200", "mxfp6:scale=even") == "native: as fast as MXFP8: it saves memory only");
    CHECK(there("torchao", "mxfp6:scale=even") == "emulated, so not recommended");
    CHECK(there("mi355x", "nvfp4") == "absent: scales are powers of two");
    CHECK(has(there("compressed-tensors", "mxfp8:scale=rceil"),
              "native as mxfp8:dialect=compressed-tensors"));
    std::string text;
    report::write_json(document_of(p, find_target("torchao")), {},
                       [&](std::string_view part) { text += part; });
    CHECK(json_of(parse_policy(text, "printed.json")) == json_of(p));
}

TEST_CASE("training takes the place of what it says itself, and keeps the rest") {
    const mx::policy::policy p = find_policy("training");
    CHECK(p.kept("gradient") == nullptr);
    CHECK(p.candidates("gradient").size() == 3);
    CHECK(p.kept("norm") != nullptr);
    const auto limit = [&](const char* role) {
        for (const rule* v : p.vetoes(role)) {
            if (v->measured->name == "underflow_energy") return v->no.value_or(0);
        }
        return 0.0;
    };
    CHECK(limit("weight") == 0);  // zeros in weights are errors like others
    CHECK(limit("gradient") == 0.002);
}

TEST_CASE("a file changes single rules of a policy") {
    const mx::policy::policy p = with_rules(
        R"({"rule": "setting", "setting": "exceptions", "value": 0},
           {"rule": "veto", "role": "weight", "figure": "underflow_rate", "no": 0.08},
           {"rule": "keep", "role": "attention", "why": "ours"},
           {"rule": "role", "role": "attention", "tensors": "*.attn.* *.attention.*"},
           {"rule": "candidate", "role": "norm", "recipe": "mxfp8:scale=rceil", "verdict": "safe"})");
    CHECK(p.setting("exceptions") == 0);
    CHECK(p.setting("least_axes") == 2);
    CHECK(p.kept("norm") == nullptr);
    CHECK(p.kept("bias") != nullptr);
    CHECK(p.role_of("weight", "layers.0.attn.q.weight") == "attention");
    CHECK(p.role_of("weight", "layers.0.mlp.q.weight") == "weight");
    CHECK(judge(projections(), p, find_target("any")).classes.empty());
}

TEST_CASE("norms are judged by their spread") {
    const mx::policy::policy p = with_rules(
        R"({"rule": "setting", "setting": "least_axes", "value": 1},
           {"rule": "candidate", "role": "norm", "recipe": "mxfp8:scale=rceil", "verdict": "safe"})");
    std::vector<tested_tensor> tensors{normal_tensor("norm.weight", "norm", {64})};
    analysis::result& r = under(tensors[0], "mxfp8:scale=rceil");
    r.spread_error = 0.09;
    CHECK(judge(tensors, p, find_target("any")).decisions[0].recipe == "mxfp8:scale=rceil");
    // The same SQNR, of values that are closer together.
    r.spread_error = 0.45;
    const judgement j = judge(tensors, p, find_target("any"));
    CHECK(j.decisions[0].recipe == keep_choice);
    CHECK(j.decisions[0].veto->of->name == "error_of_spread");
    CHECK(describe(*j.decisions[0].veto->of, j.decisions[0].veto->value) ==
          "has an error of 45.00 % of the spread of its values");
    // Also for norms that a policy keeps, on request.
    const mx::policy::policy keeps = find_policy("inference");
    const trial t = judge_tensor(keeps.vetoes("norm"), keeps.setting("dominated"), tensors[0], 0, r,
                                 normal_row("mxfp8:scale=rceil"));
    CHECK(t.is == verdict::no);
}

TEST_CASE("what is wrong with a policy's file is said") {
    CHECK(has(refusal(R"({"rule": "vetoes"})"), "rule 1 names an unknown rule 'vetoes'"));
    CHECK(has(refusal(R"({"rule": "veto", "figure": "underflow"})"), "underflow_rate"));
    CHECK(has(refusal(R"({"rule": "setting", "setting": "margin", "value": 1})"), "margin"));
    CHECK(has(refusal(R"({"rule": "keep"})"), "\"role\""));
    CHECK(has(refusal(R"({"rule": "keep", "role": 3})"), "not a string"));
    CHECK(has(refusal(R"({"rule": "candidate", "role": "weight", "recipe": "mxfp5",
                         "verdict": "safe"})"),
              "mxfp5"));
    CHECK(has(refusal(R"({"rule": "candidate", "role": "weight", "recipe": "mxfp4",
                         "verdict": "fine"})"),
              "fine"));
    CHECK(has(refusal(R"({"rule": "setting", "setting": "exceptions", "value": "x"})"),
              "not a number"));
    CHECK_THROWS_AS(parse_policy(R"({"schema": "mx.plan/1", "results": []})", "x"), base::error);
    CHECK_THROWS_AS(parse_policy(R"({"schema": "mx.policy/1", "name": "x", "results": []})", "x"),
                    base::error);
    CHECK_THROWS_AS(parse_policy(R"({"schema": "mx.policy/1", "name": "x", "extends": "inferense",
                                     "results": []})",
                                 "x"),
                    base::error);
}

TEST_CASE("scores of a task have baselines and directions") {
    const auto scores = parse_scores(R"({"schema": "mx.scores/1", "results": [
        {"recipe": "mxfp4:scale=even", "metric": "accuracy", "value": 0.72, "better": "higher"},
        {"recipe": "nvfp4", "metric": "perplexity", "value": 5.5, "better": "lower", "stderr": 0.02},
        {"recipe": "stored", "metric": "accuracy", "value": 0.75},
        {"recipe": "stored", "metric": "perplexity", "value": 5.6}]})",
                                     "scores.json");
    REQUIRE(scores.size() == 2);
    CHECK(scores[0].loss() == Approx(0.04));
    CHECK(scores[0].text() == "accuracy 0.75 to 0.72 (4.00 % worse)");
    CHECK(scores[1].loss() == Approx(-0.1 / 5.6));
    CHECK_FALSE(scores[0].error);
    CHECK(scores[1].text() == "perplexity 5.6 to 5.5 (1.79 % better, standard error 2.00 %)");
    const auto refused = [](const std::string& results) {
        return R"({"schema": "mx.scores/1", "results": [)" + results + "]}";
    };
    for (const char* bad : {R"({"recipe": "nvfp4", "metric": "p", "value": 1, "better": "lower"})",
                            R"({"recipe": "stored", "metric": "p", "value": 0})",
                            R"({"recipe": "stored", "metric": "p", "value": 1},
             {"recipe": "nvfp4", "metric": "p", "value": 1})",
                            R"({"recipe": "stored", "metric": "p", "value": 1},
             {"recipe": "nvfp5", "metric": "p", "value": 1, "better": "lower"})",
                            R"({"recipe": "stored", "metric": "p", "value": 1},
             {"recipe": "nvfp4", "metric": "p", "value": 1, "better": "lower", "stderr": -1})",
                            R"({"recipe": "stored", "metric": "p", "value": 1},
             {"recipe": "stored", "metric": "p", "value": 2})"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_scores(refused(bad), "scores.json"), base::error);
    }
}

TEST_CASE("results become tensors") {
    const report::list shape{std::int64_t{64}, std::int64_t{32}};
    const auto record = [&](const char* recipe, double sqnr) {
        return report::record{{"file", "a"},      {"tensor", "w"},          {"dtype", "BF16"},
                              {"shape", shape},   {"role", "weight"},       {"recipe", recipe},
                              {"elements", 2048}, {"poisoned", 32},         {"sqnr_db", sqnr},
                              {"exact", false},   {"gain", report::value()}};
    };
    report::record_list results;
    for (const char* r : {"mxfp8:scale=rceil", "nvfp4", "mxfp8:scale=rceil"}) {
        results.push_back(record(r, 31.5));
    }
    measured_model m;
    m.add(analysis::results_of(results, "r.json"), {});
    REQUIRE(m.tensors.size() == 1);
    CHECK(m.tensors[0].bytes == 4096);
    CHECK(m.tensors[0].shape == std::vector<std::uint64_t>{64, 32});
    REQUIRE(m.table.recipes.size() == 2);  // a second result of one is left out
    const analysis::result first = m.table.of(0, 0);
    CHECK(first.sqnr_db == 31.5);
    CHECK(first.exact == 0);
    CHECK(std::isnan(first.gain));
    CHECK(std::isnan(first.clamp_rate));
    CHECK(m.table.recipes[1].name == "nvfp4");
    CHECK(m.table.of(0, 1).poisoned == 32);
}

}  // namespace
