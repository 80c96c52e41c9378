// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/studies/gate/gate.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"

using namespace mx::analysis;
using namespace mx::gate;
namespace base = mx::base;

namespace {

std::string failure(const std::string& rule) {
    try {
        parse_gate_rule(rule);
    } catch (const base::error& e) {
        CHECK(e.kind() == base::error_kind::usage);
        return e.what();
    }
    return "no error";
}

std::string result(const std::string& tensor, const std::string& role, const std::string& recipe,
                   const std::string& figures, int elements = 8) {
    return R"({"file":"m","tensor":")" + tensor + R"(","role":")" + role + R"(","recipe":")" +
           recipe + R"(","elements":)" + std::to_string(elements) + "," + figures + "}";
}

// Two tensors under two recipes, and an empty one.
std::string sample() {
    return R"({"schema":"mx.analysis/1","results":[)" +
           result("a.weight", "weight", "mxfp8",
                  R"("clamp_rate":0.25,"sqnr_db":30.5,"exact":false)") +
           "," +
           result("a.weight", "weight", "mxfp4", R"("clamp_rate":0.5,"sqnr_db":18,"exact":false)") +
           "," +
           result("b:0", "norm", "mxfp8",
                  R"("clamp_rate":0.0,"sqnr_db":null,"exact":true,"squared_error":{"total":0.0})") +
           "," +
           result("b:0", "norm", "mxfp4", R"("clamp_rate":0.125,"sqnr_db":20.0,"exact":false)") +
           "," + result("none", "weight", "mxfp4", R"("clamp_rate":null)", 0) +
           R"(],"summary":[{"recipe":"mxfp8","sqnr_db":31.0},{"recipe":"mxfp4","sqnr_db":19.0}]})";
}

gate_verdict judged(const std::vector<std::string>& texts,
                    const std::vector<std::string>& recipes = {}) {
    const mx::test::scratch_dir dir;
    std::vector<gate_rule> rules;
    for (const std::string& text : texts) rules.push_back(parse_gate_rule(text));
    const gate_inputs inputs = open_for_gate({dir.file("r.json", sample())}, rules);
    return apply_gate(rules, inputs, recipe_filter(recipes));
}

}  // namespace

TEST_CASE("gate rules are parsed") {
    const gate_rule plain = parse_gate_rule(" clamp_rate < 0.1% ");
    CHECK(plain.text == "clamp_rate < 0.1%");
    CHECK(plain.subject == rule_subject::everything);
    CHECK(plain.metric == "clamp_rate");
    CHECK(plain.compare->symbol == "<");
    CHECK(plain.limit == 0.001);
    CHECK(!plain.or_null);

    const gate_rule norm = parse_gate_rule("norm:saturated_block_rate==0 or null");
    CHECK(norm.subject == rule_subject::role);
    CHECK(norm.subject_text == "norm");
    CHECK(norm.compare->symbol == "==");
    CHECK(norm.limit == 0);
    CHECK(norm.or_null);

    const gate_rule named = parse_gate_rule("lstm/kernel:0:squared_error.total>=-1.5e-3");
    CHECK(named.subject == rule_subject::names);
    CHECK(named.subject_text == "lstm/kernel:0");
    CHECK(named.metric == "squared_error.total");
    CHECK(named.compare->symbol == ">=");
    CHECK(named.limit == -1.5e-3);

    CHECK(parse_gate_rule("layers.[!0]*:rmse<=2").subject_text == "layers.[!0]*");
    CHECK(parse_gate_rule("summary:sqnr_db>31").subject == rule_subject::totals);
    CHECK(parse_gate_rule("exact!=true").limit == 1);
    CHECK(parse_gate_rule("exact==false").limit == 0);
    CHECK(parse_gate_rule("rmse<1e-1%").limit == 0.001);
}

TEST_CASE("every comparison compares") {
    const auto holds = [](const char* rule, double figure) {
        const gate_rule r = parse_gate_rule(rule);
        return r.compare->holds(figure, r.limit);
    };
    CHECK((holds("m<2", 1) && !holds("m<2", 2) && !holds("m<2", 3)));
    CHECK((holds("m<=2", 1) && holds("m<=2", 2) && !holds("m<=2", 3)));
    CHECK((!holds("m>2", 1) && !holds("m>2", 2) && holds("m>2", 3)));
    CHECK((!holds("m>=2", 1) && holds("m>=2", 2) && holds("m>=2", 3)));
    CHECK((!holds("m==2", 1) && holds("m==2", 2) && !holds("m==2", 3)));
    CHECK((holds("m!=2", 1) && !holds("m!=2", 2) && holds("m!=2", 3)));
}

TEST_CASE("what is no rule is refused") {
    CHECK(failure("clamp_rate") ==
          "rule 'clamp_rate': has no comparison (< <= > >= == !=); give [CLASS:]METRIC OP NUMBER, "
          "as in 'clamp_rate<0.001'");
    CHECK(failure("a=1").find("'=' is not a comparison") != std::string::npos);
    CHECK(failure("a!1").find("'!' is not a comparison") != std::string::npos);
    CHECK(failure("a<b").find("'b' is not a number") != std::string::npos);
    CHECK(failure("a<").find("'' is not a number") != std::string::npos);
    CHECK(failure("a<nan").find("is not a number") != std::string::npos);
    CHECK(failure("a<inf").find("is not a number") != std::string::npos);
    CHECK(failure("a<1e999").find("is not a number") != std::string::npos);
    CHECK(failure("a<1 2").find("is not a number") != std::string::npos);
    CHECK(failure("<1").find("'' is not the name of a metric") != std::string::npos);
    CHECK(failure(":a<1").find("nothing before the colon") != std::string::npos);
    CHECK(failure("a b<1").find("'a b' is not the name") != std::string::npos);
    CHECK(failure("").find("has no comparison") != std::string::npos);
    CHECK(failure("or null").find("has no comparison") != std::string::npos);
}

TEST_CASE("rules hold, break, and are undefined") {
    const gate_verdict v = judged({"clamp_rate<=0.5", "clamp_rate<0.125", "sqnr_db>10",
                                   "sqnr_db>10 or null", "norm:clamp_rate<=0.125", "a.*:exact==0"});
    CHECK(!v.holds());
    CHECK(v.records == 4);  // not the empty tensor
    CHECK(v.tensors == 2);
    CHECK(v.recipes == 2);
    CHECK(v.rules[0].holds());
    CHECK(v.rules[0].checked == 4);
    CHECK(v.rules[1].broken == 3);
    CHECK(v.rules[2].broken == 1);
    CHECK(v.rules[2].undefined == 1);
    CHECK(v.rules[3].holds());
    CHECK(v.rules[4].holds());
    CHECK(v.rules[4].checked == 2);
    CHECK(v.rules[5].holds());
    CHECK(v.rules[5].checked == 2);
    // The farthest first.
    REQUIRE(v.breaches.size() == 4);
    CHECK(v.breaches[0].figure == 0.5);
    CHECK(v.breaches[0].recipe == "mxfp4");
    CHECK(v.breaches[1].figure == 0.25);
    CHECK(v.breaches[2].figure == 0.125);
    CHECK(v.breaches[2].tensor == "b:0");
    CHECK(!v.breaches[3].figure);
    CHECK(v.breaches[3].rule == 2);
}

TEST_CASE("a gate looks at the recipes asked for and at the summary") {
    const gate_verdict v = judged({"sqnr_db>20", "summary:sqnr_db>=31", "b:0:sqnr_db>0 or null"},
                                  {"mxfp8:scale=floor"});
    CHECK(v.records == 2);
    CHECK(v.rules[0].checked == 2);
    CHECK(v.rules[0].undefined == 1);
    CHECK(v.rules[1].checked == 1);
    CHECK(v.rules[1].holds());
    CHECK(v.rules[2].checked == 1);
    CHECK(judged({"clamp_rate<1"}, {"mxfp*"}).records == 4);
    CHECK(judged({"clamp_rate<1"}, {"*4", "mxfp8"}).records == 4);
    CHECK_THROWS_WITH(judged({"clamp_rate<1"}, {"mxfp6"}),
                      "--recipe mxfp6: no result has it; the results have mxfp8, mxfp4");
    CHECK_THROWS_AS(judged({"clamp_rate<1"}, {"nosuch"}), base::error);
}

TEST_CASE("a rule that checks nothing fails") {
    CHECK(judged({"bias:clamp_rate<1"}).rules[0].problem == "no tensor has the role bias");
    CHECK(judged({"c.*:clamp_rate<1"}).rules[0].problem == "no tensor's name matches c.*");
    CHECK(judged({"nrom:clamp_rate<1"}).rules[0].problem ==
          "no tensor is called 'nrom', and it is not a role (did you mean 'norm'?)");
    CHECK(judged({"grid_error_share<1"}).rules[0].problem ==
          "4 of 4 results have no grid_error_share; write them with --decompose");
    // Some have it: those that have not are not passed over.
    const gate_verdict some = judged({"squared_error.total<1"});
    CHECK(!some.holds());
    CHECK(some.rules[0].checked == 1);
    CHECK(some.rules[0].problem ==
          "3 of 4 results have no squared_error.total; write them with --decompose");
}

TEST_CASE("a metric that nobody knows is refused with the nearest one") {
    CHECK_THROWS_WITH(
        judged({"clmp_rate<1"}),
        "rule 'clmp_rate<1': no result has a 'clmp_rate'; did you mean 'clamp_rate'?");
    CHECK_THROWS_WITH(judged({"recipe==1"}), "rule 'recipe==1': recipe is not a number");
}

TEST_CASE("rules are read from a file") {
    const mx::test::scratch_dir dir;
    const std::vector<gate_rule> rules = read_gate_rules(
        dir.file("rules", "# limits\n\nclamp_rate<1%  # of all\r\n  norm:exact==true\n#end"));
    REQUIRE(rules.size() == 2);
    CHECK(rules[0].text == "clamp_rate<1%");
    CHECK(rules[1].subject_text == "norm");
    const std::string bad = dir.file("bad", "a<1\nb\n");
    CHECK_THROWS_WITH(read_gate_rules(bad),
                      bad +
                          ": line 2: rule 'b': has no comparison (< <= > >= == !=); give "
                          "[CLASS:]METRIC OP NUMBER, as in 'clamp_rate<0.001'");
    CHECK_THROWS_AS(read_gate_rules(dir.file("empty", "# nothing\n")), base::error);
    CHECK_THROWS_AS(read_gate_rules(dir.file("large", std::string((1 << 20) + 1, ' '))),
                    base::error);
}

TEST_CASE("results of other commands are refused") {
    const mx::test::scratch_dir dir;
    const std::string path = dir.file("d.json", R"({"schema":"mx.layer/1","results":[]})");
    CHECK_THROWS_WITH(open_for_gate({path}, {}),
                      path +
                          ": is mx.layer; mx gate reads results files (--json) of mx analyze, mx "
                          "compare, mx diff (of dumps) and mx cluster");
}

TEST_CASE("of two dumps a result is of the later one") {
    const mx::test::scratch_dir dir;
    const std::string path = dir.file(
        "d.json", R"({"schema":"mx.diff/1","results":[{"file_a":"a","file_b":"b","tensor":"w",)"
                  R"("recipe":"mxfp8","elements":4,"nrmse":0.5}]})");
    const std::vector<gate_rule> rules{parse_gate_rule("nrmse<0.1")};
    const gate_verdict v = apply_gate(rules, open_for_gate({path}, rules), recipe_filter({}));
    REQUIRE(v.breaches.size() == 1);
    CHECK(v.breaches[0].file == "b");
    CHECK(v.checked == 1);
}

TEST_CASE("a rule about the policy has no comparison") {
    const gate_rule all = parse_gate_rule("policy");
    CHECK(all.compare == nullptr);
    CHECK(all.subject == rule_subject::everything);
    CHECK(parse_gate_rule("weight:policy").subject == rule_subject::role);
    CHECK(parse_gate_rule("a:b:policy").subject_text == "a:b");
    CHECK(parse_gate_rule("policy<1").compare != nullptr);
    CHECK_THROWS_AS(parse_gate_rule("summary:policy"), base::error);
    CHECK_THROWS_AS(parse_gate_rule("policy or null"), base::error);
    CHECK_THROWS_AS(parse_gate_rule("polic"), base::error);
}
