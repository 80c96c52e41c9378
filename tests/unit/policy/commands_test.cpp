// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/commands.hpp"

#include "tests/catch.hpp"
#include "tests/unit/policy/model.hpp"

using namespace mx;
using namespace mx::policy;
using namespace mx::policy::testing;

namespace {

report::given_command with(std::vector<report::given_option> options,
                           const std::string& command = "analyze") {
    return {{command, {"a model/"}, {}, std::move(options)}, {{"a model/1", "a model/"}}};
}

std::string shown(const report::given_command& by, const std::string& tensor) {
    return show_command(&by, "a model/1", tensor, "mxfp4");
}

}  // namespace

TEST_CASE("a missing measurement is asked for with the options of the command that was given") {
    missing_list all;
    measured_tensor t = normal_tensor("it's [a] *.weight", "weight", {64, 64});
    t.by = std::make_shared<report::given_command>(
        with({{"tensor", "*"}, {"transpose", "x*"}, {"norm-bias", "1"}}));
    all.add(t, "mxfp8:scale=rceil", true);
    t.name = "b";
    all.add(t, "mxfp8:scale=rceil", true);
    all.add(t, "nvfp4", false);
    // Measured by a command with other options: another command.
    t.by = std::make_shared<report::given_command>(with({{"swizzled"}}, "cluster"));
    t.name = "c";
    all.add(t, "nvfp4", false);
    // Not known by which.
    t.by = nullptr;
    all.add(t, "nvfp4", false);
    const std::vector<report::given_option> judging{{"target", "b200"}};
    const auto missing = all.take(3);
    REQUIRE(missing.size() == 4);
    CHECK(command_of(missing[0], judging) ==
          "mx analyze 'a model/' --transpose 'x*' --norm-bias 1 -r mxfp8:scale=rceil -t "
          "'it'\\''s \\[a] \\*.weight' -t b --target b200");
    CHECK(command_of(missing[1], {}) ==
          "mx analyze 'a model/' --transpose 'x*' --norm-bias 1 -r nvfp4 -t b");
    CHECK(command_of(missing[2], {}) == "mx cluster 'a model/' --swizzled -r nvfp4 -t c");
    CHECK(command_of(missing[3], judging).empty());
}

TEST_CASE("what all tensors lack is asked for with the patterns that were given") {
    missing_list all;
    measured_tensor t = normal_tensor("a", "weight", {64, 64});
    t.by = std::make_shared<report::given_command>(with({{"tensor", "l.*"}}, "compare"));
    all.add(t, "nvfp4", false);
    CHECK(command_of(all.take(1).front(), {}) == "mx analyze 'a model/' -t 'l.*' -r nvfp4");
    // A group is no tensor.
    t.by = std::make_shared<report::given_command>(with({{"group", "experts.*"}}));
    t.name = "experts.*.up";
    all = {};
    all.add(t, "nvfp4", false);
    CHECK(command_of(all.take(7).front(), {}) ==
          "mx analyze 'a model/' --group 'experts.*' -r nvfp4");
}

TEST_CASE("a tensor is shown as it was read") {
    CHECK(shown(with({}), "w") == "mx show 'a model/' w -r mxfp4");
    CHECK(shown(with({{"tensor", "*"}, {"role", "weight"}, {"group", "role"}}), "w") ==
          "mx show 'a model/' w -r mxfp4");
    const auto views = with({{"raw"},
                             {"split", "qkv@-1=q:1,k:2"},
                             {"transpose", "up*"},
                             {"experts", "x"},
                             {"heads", "x.*=4"},
                             {"role-pattern", "norm=*"}});
    CHECK(shown(views, "qkv.q") ==
          "mx show 'a model/' qkv.q --raw --split qkv@-1=q:1,k:2 --role-pattern 'norm=*' -r mxfp4");
    CHECK(shown(views, "up.weight") ==
          "mx show 'a model/' up.weight --raw --transpose 'up*' --role-pattern 'norm=*' -r mxfp4");
    CHECK(shown(views, "x.3") ==
          "mx show 'a model/' x.3 --raw --experts x --heads 'x.*=4' --role-pattern 'norm=*' -r "
          "mxfp4");
    CHECK(shown(with({{"split", ""}, {"heads", "@"}}), "w") == "mx show 'a model/' w -r mxfp4");
    CHECK(show_command(nullptr, "f", "w", "mxfp4").empty());
}

TEST_CASE("what quantize takes is what the verdict calls an operand") {
    const mx::policy::policy by = find_policy("inference");
    auto tensors = std::vector{normal_tensor("l.q_proj.weight", "weight", {64, 64}),
                               normal_tensor("norm.weight", "norm", {64}),
                               normal_tensor("gate.weight", "router", {8, 64}),
                               normal_tensor("tok.weight", "embedding", {64, 64}),
                               normal_tensor("lm_head.weight", "head", {64, 64}),
                               normal_tensor("row", "weight", {1, 64}),
                               normal_tensor("ids", "weight", {64, 64})};
    tensors.back().dtype = "I32";
    const judgement j = judge(tensors, by, find_target("any"));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const measured_tensor& t = tensors[i];
        CAPTURE(t.name);
        CHECK(j.decisions[i].operand == why_kept(t, by.role_of(t.role, t.name), by).empty());
        CHECK(j.decisions[i].operand == (i == 0));
    }
}
