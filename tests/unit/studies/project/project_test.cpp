// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/optimize/minimize.hpp"
#include "libmx/studies/project/records.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"

namespace project = mx::project;
using project::parse_configuration;

namespace {

const project::model_shape& llama() {
    return *mx::base::find_named(project::model_shapes, "llama3-405b");
}

const project::profile& profile_named(const char* name) {
    return *mx::base::find_named(project::profiles, name);
}

double speedup(const project::assumptions& a, std::string_view configuration) {
    return project::project(llama(), a, parse_configuration(std::string(configuration))).speedup();
}

// For the configurations of project::published_rows, in their order.
void check_row(const project::assumptions& a, const std::array<double, 6>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO(project::published_rows[i].configuration);
        CHECK(speedup(a, project::published_rows[i].configuration) ==
              Approx(expected[i]).margin(0.0005));
    }
}

std::vector<project::target_row> yang_targets(const std::vector<std::size_t>& checks) {
    std::vector<project::target_row> rows;
    for (std::size_t i = 0; i < project::published_rows.size(); ++i) {
        const bool check = std::ranges::find(checks, i) != checks.end();
        rows.push_back({parse_configuration(std::string(project::published_rows[i].configuration)),
                        project::published_rows[i].speedup, 0.005, check});
    }
    return rows;
}

struct scratch_file {
    mx::test::scratch_dir folder;
    std::string path;
    scratch_file(const char* name, const std::string& text) : path(folder.file(name, text)) {}
};

}  // namespace

TEST_CASE("the work of Llama 3 405B") {
    // GFLOP a token and layer, from the shapes.
    const auto flop = project::forward_flop(llama(), 8192, true);
    CHECK(flop[0] / 126 == Approx(5.234e9).epsilon(1e-4));
    CHECK(flop[1] / 126 == Approx(0.604e9 + 0.537e9).epsilon(1e-3));
    CHECK(flop[2] / 126 == Approx(0.268e9).epsilon(2e-3));
    CHECK(flop[3] == Approx(4.203e9).epsilon(1e-3));
    CHECK(project::forward_flop(llama(), 8192, false)[2] == 2 * flop[2]);
    CHECK(project::parameters(llama()) == Approx(405.8e9).epsilon(2e-4));
    const double all = flop[0] + flop[1] + flop[2] + flop[3];
    CHECK(flop[0] / all == Approx(0.784).margin(0.0005));
    CHECK(flop[1] / all == Approx(0.171).margin(0.0005));
}

TEST_CASE("profiles give the published speed-ups") {
    check_row(profile_named("yang-fit").assumes, {2.730, 2.480, 1.720, 2.295, 2.110, 2.400});
    check_row(profile_named("yang-shapes").assumes, {2.730, 2.480, 1.7256, 2.293, 2.110, 2.400});
}

TEST_CASE("a third of wide products and no overhead overstate the mixed recipes") {
    project::assumptions a = profile_named("yang-fit").assumes;
    a.mixed = 1.0 / 3;
    a.overhead = 0;
    check_row(a, {2.730, 2.480, 1.720, 2.563, 2.283, 2.730});
}

TEST_CASE("the profiles are what --solve finds") {
    if (mx::optimize::nlopt_version().empty()) return;
    project::assumptions start = profile_named("ideal").assumes;
    const std::vector<std::string> names{"mlp", "attention", "fp8", "mixed", "overhead"};
    const project::solution p = project::solve(llama(), start, names, yang_targets({3}));
    const project::assumptions& of_p = profile_named("yang-fit").assumes;
    const std::map<std::string, std::array<double, 3>> expected{
        // The value, with the range that rounding allows.
        {"mlp", {of_p.mlp, 0.796, 0.802}},
        {"attention", {of_p.attention, 0.048, 0.052}},
        {"fp8", {of_p.fp8[0], 1.959, 1.988}},
        {"mixed", {of_p.mixed, 0.256, 0.278}},
        {"overhead", {of_p.overhead, 0.049, 0.052}}};
    REQUIRE(p.parameters.size() == 5);
    for (const project::solved_parameter& x : p.parameters) {
        INFO(x.name);
        const auto& [value, low, high] = expected.at(x.name);
        CHECK(x.value == Approx(value).margin(1e-6));
        CHECK(x.low == Approx(low).margin(0.002));
        CHECK(x.high == Approx(high).margin(0.002));
        CHECK(x.low < x.value);
        CHECK(x.high > x.value);
    }

    start = profile_named("yang-shapes").assumes;
    start.fp8 = {2, 1.2};
    start.mixed = 0.3;
    start.overhead = 0;
    const std::vector<std::string> by_class{"fp8.mlp", "fp8.attention", "mixed", "overhead"};
    const project::solution c = project::solve(llama(), start, by_class, yang_targets({2, 3}));
    const project::assumptions& of_c = profile_named("yang-shapes").assumes;
    CHECK(c.parameters[0].value == Approx(of_c.fp8[0]).margin(1e-6));
    CHECK(c.parameters[1].value == Approx(of_c.fp8[1]).margin(1e-6));
    CHECK(c.parameters[2].value == Approx(of_c.mixed).margin(1e-6));
    CHECK(c.parameters[3].value == Approx(of_c.overhead).margin(1e-6));

    // With full scores FP8 is missed by more.
    start.causal = false;
    check_row(project::solve(llama(), start, by_class, yang_targets({2, 3})).with,
              {2.730, 2.480, 1.7527, 2.297, 2.110, 2.400});
    // Ideal rates, all else free.
    check_row(project::solve(llama(), profile_named("ideal").assumes,
                             {"mlp", "attention", "mixed", "overhead"}, yang_targets({2, 3}))
                  .with,
              {2.730, 2.480, 1.7316, 2.2951, 2.110, 2.400});
    // One speed for both classes at their ratio of FLOP misses the first two.
    project::assumptions one = profile_named("yang-fit").assumes;
    one.shares_by_flop = true;
    const auto found =
        project::solve(llama(), one, {"rest", "fp8", "fp6", "mixed", "overhead"}, yang_targets({}));
    CHECK(speedup(found.with, "mxfp4") == Approx(2.95).margin(0.006));
    CHECK(speedup(found.with, "mxfp4:scope=mlp") == Approx(2.19).margin(0.006));
    CHECK(speedup(found.with, "mxfp6/mxfp6/mxfp4") == Approx(2.31).margin(0.001));

    CHECK_THROWS_AS(project::solve(llama(), start, by_class, yang_targets({0, 1, 2})),
                    mx::base::error);
}

TEST_CASE("mixed products run at the rate of the operand that the rule names") {
    project::assumptions a;  // by FLOP, 2 and 4 times
    const auto shares = project::shares_of(llama(), a);
    const auto time = [&](double linear) { return (shares[0] + shares[1]) * linear + shares[2]; };
    a.fp6_is = project::fp6_rule::as_fp8;
    a.mixed_is = project::mixed_rule::wide;
    CHECK(speedup(a, "mxfp6/mxfp6/mxfp4") == Approx(1 / time(0.5)));
    CHECK(speedup(a, "mxfp4/mxfp4/bf16") == Approx(1 / time((0.25 + 2) / 3)));
    CHECK(speedup(a, "mxfp4:products=fprop") == Approx(1 / time((0.25 + 2) / 3)));
    a.mixed_is = project::mixed_rule::narrow;
    CHECK(speedup(a, "mxfp6/mxfp6/mxfp4") == Approx(1 / time((0.5 + 0.25 + 0.25) / 3)));
    CHECK(speedup(a, "mxfp4/bf16/bf16") == Approx(1.0));
    a.fp6_is = project::fp6_rule::as_fp4;
    CHECK(speedup(a, "mxfp6/mxfp6/mxfp4") == Approx(speedup(a, "mxfp4")));
    // Su et al.: forward only gains at most half.
    a.fp4_is = project::fp4_rule::given;
    a.fp4 = {1e5, 1e5};
    CHECK(speedup(a, "mxfp4:products=fprop") < 1.5);
}

TEST_CASE("bits of an element hold its part of the scales") {
    CHECK(parse_configuration("mxfp4").weights.bits == 4.25);
    CHECK(parse_configuration("mxfp6").weights.bits == 6.25);
    CHECK(parse_configuration("mxfp8").weights.bits == 8.25);
    CHECK(parse_configuration("nvfp4").weights.bits == 4.5);
    CHECK(parse_configuration("fp8").weights.bits == 8);
    // Yang et al.: 3.76 times less than bf16.
    CHECK(16 / parse_configuration("mxfp4").weights.bits == Approx(3.765).margin(0.001));
}

TEST_CASE("configurations have one spelling, and others are refused") {
    CHECK(parse_configuration("mxfp4/mxfp4/mxfp4").name == "mxfp4");
    CHECK(parse_configuration("mxfp4_e2m1:scope=linear,products=all,fp6=own").name == "mxfp4");
    CHECK(parse_configuration("mxfp6/mxfp6/mxfp4:fp6=fp8,scope=mlp").name ==
          "mxfp6/mxfp6/mxfp4:scope=mlp,fp6=fp8");
    CHECK(!parse_configuration("mxfp4").mixed());
    CHECK(parse_configuration("mxfp6/mxfp6/mxfp4").mixed());
    CHECK(!parse_configuration("mxfp6/mxfp6/mxfp4:products=fprop").mixed());
    for (const char* text : {"", "mxfp5", "mxint8", "mxfp4/mxfp4", "mxfp4:scope=head", "mxfp4:x=1",
                             "mxfp4:scope", "mxfp4:fp6=7"}) {
        INFO(text);
        CHECK_THROWS_AS(parse_configuration(text), mx::base::error);
    }
}

TEST_CASE("shapes come from a config.json, which may be damaged") {
    const std::string good =
        "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
        "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
        "\"vocab_size\":128256}";
    const scratch_file file("mx_project_config.json", good);
    const project::named_shape m = project::find_model(file.path);
    const auto& preset = *mx::base::find_named(project::model_shapes, "llama3-8b");
    CHECK(project::parameters(m.shape) == project::parameters(preset));
    CHECK(m.shape.head_size == 128);
    const auto replaced = [&](const std::string& what, const std::string& by) {
        std::string text = good;
        text.replace(text.find(what), what.size(), by);
        return text;
    };
    for (const std::string& text :
         {replaced("4096", "0"), replaced("4096", "-1"), replaced("4096", "1e300"),
          replaced("4096", "\"x\""), replaced("\"llama\"", "\"gpt2\""), replaced("{", "["),
          replaced("\"hidden_size\":4096,", ""), replaced("{", "{\"num_local_experts\":8,")}) {
        INFO(text);
        const scratch_file damaged("mx_project_damaged.json", text);
        CHECK_THROWS_AS(project::find_model(damaged.path), mx::base::error);
    }
    CHECK_THROWS_AS(project::find_model("llama3-9b"), mx::base::error);
}

TEST_CASE("rates come from measured products, the nearest shape for each") {
    // The MLP at 2 and 4 times bf16, attention's layers at 1.5 and 2.
    const project::model_shape& m = llama();
    const double tokens = 8192;
    std::string table = "M,N,K,format,seconds\n";
    for (const project::linear_layer& l : project::linear_layers(m)) {
        const auto o = static_cast<double>(l.out), i = static_cast<double>(l.in);
        const bool mlp = l.is == project::work::mlp;
        for (const auto& [name, rate] : {std::pair{"bf16", 1.0}, std::pair{"fp8", mlp ? 2.0 : 1.5},
                                         std::pair{"fp4", mlp ? 4.0 : 2.0}}) {
            for (const auto& s :
                 {std::array{tokens, o, i}, std::array{tokens, i, o}, std::array{o, i, tokens}}) {
                char row[200];
                std::snprintf(row, sizeof row, "%.0f,%.0f,%.0f,%s,%.17g\n", s[0], s[1], s[2], name,
                              2 * s[0] * s[1] * s[2] / (1e15 * rate));
                table += row;
            }
        }
    }
    const scratch_file file("mx_project_times.csv", table);
    project::assumptions a;
    const project::measured_rates found = project::take_measured(file.path, m, tokens, a);
    CHECK(found.exact == found.of);
    CHECK(found.missing == std::vector<project::unit>{project::unit::fp6});
    CHECK(project::rate_of(a, 0, project::unit::fp8, {}) == Approx(2));
    CHECK(project::rate_of(a, 1, project::unit::fp4, {}) == Approx(2));
    const auto flop = project::forward_flop(m, 8192, true);
    CHECK(found.seconds == Approx(3 * tokens * (flop[0] + flop[1] + flop[2] + flop[3]) / 1e15));
    const project::assumptions by_flop;
    CHECK(a.mlp == Approx(project::shares_of(m, by_flop)[0]));

    for (const char* text :
         {"M,N,K,format,seconds\n1,1,1,fp8,1\n", "M,N,K,format\n1,1,1,bf16\n",
          "M,N,K,format,seconds\n1,1,0,bf16,1\n", "M,N,K,format,seconds\n1,1,1,int8,1\n"}) {
        const scratch_file damaged("mx_project_damaged.csv", text);
        CHECK_THROWS_AS(project::take_measured(damaged.path, m, tokens, a), mx::base::error);
    }
}

TEST_CASE("speed-ups to solve for are read with what they may be rounded from") {
    const scratch_file file("mx_project_targets.csv", "configuration,speedup\nmxfp4,2.7\nfp8,2\n");
    const auto rows = project::read_targets(file.path);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].half_unit == Approx(0.05));
    CHECK(rows[1].half_unit == Approx(0.5));
    for (const char* text : {"configuration,speedup\n", "configuration,speedup\nmxfp4,0\n",
                             "configuration,speedup\nmxfp4,2\nmxfp4/mxfp4/mxfp4,2\n",
                             "configuration,speedup\nx,2\n", "a,b\n1,2\n"}) {
        const scratch_file damaged("mx_project_damaged.csv", text);
        CHECK_THROWS_AS(project::read_targets(damaged.path), mx::base::error);
    }
}
