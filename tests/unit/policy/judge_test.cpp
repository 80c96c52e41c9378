// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/base/status.hpp"
#include "tests/catch.hpp"
#include "tests/unit/policy/model.hpp"

using namespace mx;
using namespace mx::policy;
using namespace mx::policy::testing;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const class_judgement& class_of(const judgement& j, std::string_view role) {
    const auto at = std::find_if(j.classes.begin(), j.classes.end(),
                                 [&](const class_judgement& c) { return c.role == role; });
    REQUIRE(at != j.classes.end());
    return *at;
}

std::string chosen(const judgement& j, std::string_view role = "weight") {
    const class_judgement& c = class_of(j, role);
    if (c.undecided) return "undecided";
    return c.chosen ? c.candidates[*c.chosen].recipe : "keep";
}

TEST_CASE("only operands of products get a recipe") {
    auto tensors = projections();
    const std::size_t weights = tensors.size();
    tensors.push_back(normal_tensor("norm.weight", "norm", {64}));
    tensors.push_back(normal_tensor("q.bias", "bias", {4, 64}));
    tensors.push_back(normal_tensor("mlp.gate.weight", "router", {8, 64}));
    tensors.push_back(normal_tensor("inv_freq", "other", {32}));
    tensors.push_back(normal_tensor("row", "weight", {1, 64}));
    tensors.push_back(normal_tensor("exp_avg", "optimizer", {64, 64}));
    tensors.push_back(normal_tensor("tok.weight", "embedding", {512, 64}));
    tensors.push_back(normal_tensor("lm_head.weight", "head", {512, 64}));
    tensors.push_back(normal_tensor("position_ids", "weight", {64, 64}));
    tensors.back().dtype = "I64";
    tensors.back().bytes *= 2;
    const judgement j = judged(tensors);
    std::uint64_t kept = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        CAPTURE(tensors[i].name);
        CHECK((j.decisions[i].recipe == keep_choice) == (i >= weights));
        CHECK(j.decisions[i].operand == (i < weights));
        CHECK(j.decisions[i].reason.empty() == (i < weights));
        const bool state = tensors[i].role == "optimizer";
        CHECK(j.decisions[i].counted != state);
        if (i >= weights && !state) kept += tensors[i].bytes;
    }
    CHECK(chosen(j) == "mxfp8:scale=rceil");
    CHECK(j.classes.size() == 1);
    CHECK(j.totals.kept == kept);
    CHECK(j.totals.undecided == 0);
    CHECK(j.totals.not_counted == 64 * 64 * 4);
    CHECK(j.totals.stored - j.totals.recommended == weights * (4096 * 4 - 4096 * 33 / 32));
    CHECK(j.confidence == "tensor error only");
    // Embeddings and the head stay, and the saving of MXFP8 is stated: 32 bits against 8.25.
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const bool said = tensors[i].role == "embedding" || tensors[i].name == "lm_head.weight";
        CHECK(j.decisions[i].could_save == (said ? 512 * 64 * (32 * 4 - 33) / 32 : 0));
    }
    CHECK(j.decisions[weights + 7].role == "head");
}

TEST_CASE("a rule that keeps tensors need not say why") {
    const auto ours = parse_policy(
        R"({"schema": "mx.policy/1", "name": "ours", "version": "1", "purpose": "a test",
            "extends": "inference", "results": [{"rule": "keep", "role": "weight"}]})",
        "ours.json");
    const judgement j = judge(projections(), ours, find_target("any"), {});
    CHECK(j.decisions.front().recipe == keep_choice);
    CHECK(j.decisions.front().reason == "the policy ours keeps it");
    CHECK(!j.decisions.front().by_rule);  // no words of it are quoted
    CHECK(j.classes.empty());
}

TEST_CASE("results without the bits of an element are judged by those of whole blocks") {
    auto tensors = projections();
    const judgement whole = judged(tensors);
    for (tested_tensor& t : tensors) {
        for (const std::string& r : usual) {
            alter(t, r, [](analysis::result& f) { f.bits_per_element = nan; });
        }
    }
    CHECK(judged(tensors).totals.recommended == whole.totals.recommended);
}

TEST_CASE("an error that is the rounding of one element is the last of the risks, and says so") {
    auto tensors = projections();
    for (const std::string& r : usual) {
        alter(tensors[3], r, [](analysis::result& f) {
            f.nrmse *= 2;
            f.crest_factor = std::sqrt(0.5 * 4096);
        });
    }
    const judgement j = judged(tensors);
    REQUIRE(j.risks.size() == tensors.size());
    CHECK(j.risks.back().tensor == 3);
    CHECK(j.risks.back().one_element == Approx(0.5));
    CHECK(j.risks.back().over_normal > j.risks.front().over_normal);
    CHECK(j.risks.front().one_element == 0);
}

TEST_CASE("zeros without energy are no harm") {
    auto tensors = projections();
    for (const std::string& r : usual) {
        alter(tensors[17], r, [](analysis::result& f) {
            f.underflow_rate = 0.969;
            f.sqnr_db = 63;  // the remainder is exact
            f.nrmse = 0.0007;
            f.crest_factor = 5.6;
            f.gain = 1;
        });
    }
    const judgement j = judged(tensors);
    CHECK(j.decisions[17].recipe == "mxfp8:scale=rceil");
    CHECK(j.risks.back().tensor == 17);
    CHECK_FALSE(j.risks.back().why);
}

TEST_CASE("one projection with a large error leads the risks") {
    auto tensors = projections();
    // Larger than all others together, and as good as normally distributed data.
    tensors.push_back(normal_tensor("big.weight", "weight", {1024, 1024}));
    const std::size_t planted = 17;
    const bool everywhere = GENERATE(true, false);
    for (const std::string& r : usual) {
        if (!everywhere && r.substr(0, 5) == "mxfp8") continue;
        alter(tensors[planted], r, [](analysis::result& f) {
            f.nrmse = 0.5;
            f.sqnr_db = 6.02;
            f.crest_factor = 5.6;
            f.gain = 1;
        });
    }
    const judgement j = judged(tensors);
    REQUIRE(!j.risks.empty());
    // The recipe of the class suits it if only the others do not.
    CHECK((j.risks.front().tensor == planted) == everywhere);
    CHECK(j.risks.front().recommended);
    if (everywhere) {
        CHECK(j.risks.front().energy == 0.25);
        CHECK(j.risks.front().over_normal > 100);
        REQUIRE(j.risks.front().why);
        CHECK(j.risks.front().why->of->name == "sqnr_below_normal");
    }
    // The class is unchanged; the tensor keeps its precision because MXFP8 harms it too.
    CHECK(chosen(j) == "mxfp8:scale=rceil");
    CHECK(j.decisions[planted].recipe == (everywhere ? "keep" : "mxfp8:scale=rceil"));
    CHECK(j.risks.front().remedy == (everywhere ? "keep its stored precision" : ""));
    CHECK(j.decisions[planted - 1].recipe == "mxfp8:scale=rceil");
}

TEST_CASE("risks are ordered by error relative to normal data, not by size or zeros") {
    auto tensors = projections({"mxfp8:scale=rceil"});
    tensors.push_back(normal_tensor("big", "weight", {1024, 1024}, {"mxfp8:scale=rceil"}));
    const auto change = [&](std::size_t i, double metrics::row::*member, double value) {
        tensors[i].measured.front().*member = value;
    };
    const double usual_error = tensors[0].measured.front().nrmse;
    change(40, &metrics::row::nrmse, 1.05 * usual_error);
    change(7, &metrics::row::nrmse, 1.2 * usual_error);
    change(8, &metrics::row::underflow_rate, 0.5);  // zeros without energy
    change(9, &metrics::row::nrmse, 1.1 * usual_error);
    change(10, &metrics::row::gain, 0.9);  // ruled out
    const judgement j = judged(tensors);
    std::vector<std::size_t> order;
    for (std::size_t n = 0; n < 4; ++n) order.push_back(j.risks[n].tensor);
    CHECK(order == std::vector<std::size_t>{10, 7, 9, 40});
    CHECK(j.risks[1].over_normal == Approx(1.44).epsilon(0.05));
    CHECK(j.risks[1].energy == Approx(1.44 * usual_error * usual_error));
}

TEST_CASE("a tensor without whole blocks keeps its precision, and its damage shows") {
    auto tensors = projections();
    tensors.push_back(normal_tensor("layers.0.mlp.down_proj.weight", "weight", {64, 172}));
    CHECK(
        std::ranges::none_of(judged(tensors).risks, [](const risk& r) { return r.tensor == 40; }));
    alter(tensors.back(), "mxfp8:scale=rceil", [](analysis::result& f) {
        f.sqnr_db -= 12;
        f.nrmse *= 4;
    });
    const judgement j = judged(tensors);
    CHECK(j.risks.front().tensor == 40);
    CHECK(j.risks.front().remedy == "it is kept: its K does not consist of whole blocks");
    CHECK(j.decisions[40].recipe == keep_choice);
    CHECK(j.decisions[40].reason ==
          "K = 172 is not a multiple of 32; padded to 192 it costs 11.6 % more");
    CHECK(class_of(j, "weight").elements == 40 * 4096);
    CHECK(class_of(j, "weight").candidates.front().vetoed.empty());
    // Measured along an axis of whole blocks it is like any other.
    tensors.back().measured.push_back(measured("mxfp8:scale=rceil,axis=-2"));
    const judgement again = judged(tensors);
    CAPTURE(again.decisions[40].reason);
    CHECK(again.decisions[40].recipe == "mxfp8:scale=rceil,axis=-2");
    // Its file can say that products sum over the other axis.
    tensors = projections();
    tensors.push_back(normal_tensor("dense.kernel", "weight", {64, 172}));
    tensors.back().sums_over = {0, 1, 64, false, "the graph"};
    CHECK(judged(tensors).decisions[40].recipe == "mxfp8:scale=rceil");
    tensors.back().shape = {172, 64};
    tensors.back().sums_over.extent = 172;
    CHECK(judged(tensors).decisions[40].padded == 192);
}

TEST_CASE("a convolution has blocks along all axes that it sums over") {
    auto tensors = projections();
    tensors.push_back(normal_tensor("conv.weight", "weight", {512, 256, 1, 5}));
    tensors.back().sums_over = {1, 4, 1280, true, "[out, in, ...] assumed"};
    CHECK(judged(tensors).decisions[40].recipe == "mxfp8:scale=rceil");
    tensors.push_back(normal_tensor("depthwise.weight", "weight", {512, 1, 3, 3}));
    tensors.back().sums_over = {1, 4, 9, true, "[out, in, ...] assumed"};
    const judgement j = judged(tensors);
    CHECK(j.decisions[41].recipe == keep_choice);
    CHECK(j.decisions[41].reason ==
          "K = 9 is not a multiple of 32; padded to 32 it costs 255.6 % more");
    // Results of earlier versions do not say: the last axis, or all after the first with axis=flat.
    tensors = projections();
    tensors.push_back(normal_tensor("conv.weight", "weight", {512, 256, 1, 5}));
    CHECK(judged(tensors).decisions[40].recipe == keep_choice);
    tensors.back().measured.push_back(measured("mxfp8:scale=rceil,axis=flat"));
    CHECK(judged(tensors).decisions[40].recipe == "mxfp8:scale=rceil,axis=flat");
}

TEST_CASE("each limit rules a recipe out for the tensor that reaches it") {
    struct change {
        const char* figure;
        double metrics::row::*member;
        double good, bad;
    };
    const metrics::row n = normal_row("mxfp8:scale=rceil");
    const change row = GENERATE_COPY(values<change>(
        {{"saturated_block_rate", &metrics::row::saturated_block_rate, 0.0099, 0.01},
         {"collapsed_block_rate", &metrics::row::collapsed_block_rate, 0.0099, 0.01},
         {"clamp_rate", &metrics::row::clamp_rate, 0.099, 0.1},
         {"sqnr_below_normal", &metrics::row::sqnr_db, n.sqnr_db - 2.99, n.sqnr_db - 3.01},
         {"gain_error", &metrics::row::gain, n.gain - 0.0099, n.gain - 0.0130}}));
    CAPTURE(row.figure);
    auto tensors = projections();
    alter(tensors[3], "mxfp8:scale=rceil", [&](analysis::result& f) {
        f.crest_factor = 4;
        f.*row.member = row.good;
    });
    CHECK(judged(tensors).decisions[3].recipe == "mxfp8:scale=rceil");
    alter(tensors[3], "mxfp8:scale=rceil", [&](analysis::result& f) { f.*row.member = row.bad; });
    const judgement j = judged(tensors);
    CHECK(j.decisions[3].recipe == keep_choice);
    REQUIRE(j.decisions[3].veto);
    CHECK(j.decisions[3].veto->of->name == row.figure);
    CHECK(j.decisions[3].reason.find("ruled out") != std::string::npos);
    CHECK(j.risks.front().tensor == 3);
    CHECK(j.decisions[2].recipe == "mxfp8:scale=rceil");
}

TEST_CASE("a tensor's poisoned elements rule a recipe out") {
    auto tensors = projections();
    alter(tensors[3], "mxfp8:scale=rceil", [](analysis::result& f) { f.poisoned = 64; });
    const judgement j = judged(tensors);
    CHECK(j.decisions[3].recipe == keep_choice);
    CHECK(j.decisions[3].reason.find("64 elements that become NaN") != std::string::npos);
}

TEST_CASE("a small loss of SQNR needs evaluation") {
    auto tensors = projections();
    alter(tensors[3], "mxfp8:scale=rceil", [](analysis::result& f) { f.sqnr_db -= 1.5; });
    const judgement j = judged(tensors);
    CHECK(j.decisions[3].recipe == "mxfp8:scale=rceil");
    CHECK(j.decisions[3].is == verdict::evaluate);
    CHECK(class_of(j, "weight").candidates.front().doubtful == std::vector<std::size_t>{3});
}

TEST_CASE("SQNR and gain are not judged where one element holds the squares") {
    auto tensors = projections();
    alter(tensors[3], "mxfp8:scale=rceil", [](analysis::result& f) {
        f.sqnr_db = 24;
        f.gain = 0.95;
        f.crest_factor = 63;  // of 64 that 4096 elements allow
    });
    CHECK(judged(tensors).decisions[3].recipe == "mxfp8:scale=rceil");
    CHECK(judged(tensors).decisions[3].is == verdict::safe);
    alter(tensors[3], "mxfp8:scale=rceil", [](analysis::result& f) { f.crest_factor = 8; });
    CHECK(judged(tensors).decisions[3].recipe == keep_choice);
}

TEST_CASE("blocks of one magnitude that was all there was have lost nothing") {
    auto tensors = projections();
    alter(tensors[3], "mxfp8:scale=rceil", [](analysis::result& f) {
        f.collapsed_block_rate = 1;
        f.exact = 1;
        f.sqnr_db = nan;
        f.nrmse = 0;
    });
    CHECK(judged(tensors).decisions[3].recipe == "mxfp8:scale=rceil");
}

TEST_CASE("a recipe that is ruled out for more of a class than exceptions may be is no class's") {
    auto tensors = projections();
    for (std::size_t i = 0; i < 20; ++i) {
        alter(tensors[i], "mxfp8:scale=rceil", [](analysis::result& f) { f.clamp_rate = 0.2; });
    }
    CHECK(chosen(judged(tensors)) == "mxfp8:scale=rceil");  // 50 %
    alter(tensors[20], "mxfp8:scale=rceil", [](analysis::result& f) { f.clamp_rate = 0.2; });
    const judgement j = judged(tensors);
    CHECK(chosen(j) == "keep");
    CHECK(j.totals.recommended == j.totals.stored);
    CHECK(class_of(j, "weight").reason ==
          "mxfp8:scale=rceil is ruled out for 52.50 % of the elements");
}

TEST_CASE("nothing is recommended where the policy's choice was not measured") {
    const auto tensors = projections({"mxfp8", "mxfp4:scale=even", "nvfp4"});
    const judgement j = judged(tensors);
    CHECK(chosen(j) == "undecided");
    CHECK(j.totals.recommended == j.totals.stored);
    CHECK(j.totals.undecided == j.totals.stored);
    REQUIRE(j.missing.size() == 1);
    CHECK(command_of(j.missing.front(), {}) == "mx analyze model.safetensors -r mxfp8:scale=rceil");
    CHECK(j.missing.front().needed);
    // Recipes that need evaluation are listed, but decide nothing.
    const auto enough = projections({"mxfp8:scale=rceil"});
    const judgement k = judged(enough);
    CHECK(chosen(k) == "mxfp8:scale=rceil");
    REQUIRE(k.missing.size() == 1);
    CHECK_FALSE(k.missing.front().needed);
    CHECK(k.missing.front().recipes == std::vector<std::string>{"nvfp4", "mxfp4:scale=even"});
}

TEST_CASE("another scale rule has to gain the margin") {
    auto tensors = projections();
    const double gain = GENERATE(0.4, 0.6);
    for (tested_tensor& t : tensors) {
        const double db = normal_row("mxfp8:scale=rceil").sqnr_db + gain;
        alter(t, "mxfp8", [&](analysis::result& f) {
            f.sqnr_db = db;
            f.nrmse = std::pow(10.0, -db / 20);
        });
    }
    const judgement j = judged(tensors);
    // It is named; which rules were measured does not change the choice.
    CHECK(chosen(j) == "mxfp8:scale=rceil");
    for (const decision& d : j.decisions) CHECK(d.recipe == chosen(j));
    const bool named = j.classes.front().reason.find("mxfp8 gains 0.60 dB") != std::string::npos;
    CHECK(named == (gain > 0.5));
}

namespace {

void make_exact(analysis::result& f) {
    f.rmse = f.nrmse = 0;
    f.sqnr_db = nan;
    f.exact = f.gain = 1;
}

}  // namespace

TEST_CASE("a result without an error passes every limit") {
    for (const char* recipe : {"mxfp8:scale=rceil", "mxfp4:scale=even"}) {
        auto tensors = projections();
        alter(tensors[3], recipe, [](analysis::result& f) {
            make_exact(f);
            f.saturated_block_rate = f.collapsed_block_rate = 1;
        });
        const judgement j = judged(tensors);
        CHECK(j.decisions[3].recipe == "mxfp8:scale=rceil");
        CHECK_FALSE(j.decisions[3].veto);
        for (const risk& r : j.risks) CHECK((r.tensor != 3 || r.recipe != recipe));
    }
}

TEST_CASE("equal recipes are ordered by bits, then by the policy, whatever was measured") {
    for (const std::vector<std::string>& recipes :
         {usual, std::vector<std::string>{"nvfp4", "mxfp4:scale=even", "mxfp8:scale=even", "mxfp8",
                                          "mxfp4", "mxfp8:scale=rceil", "mxfp8_e5m2"}}) {
        auto tensors = projections(recipes);
        for (tested_tensor& t : tensors) {
            for (analysis::result& r : t.measured) make_exact(r);
        }
        const judgement j = judged(tensors);
        const class_judgement& c = j.classes.front();
        CHECK(chosen(j) == "mxfp4:scale=even");
        CHECK(c.reason.find("nan") == std::string::npos);
        CHECK(c.reason.find("gains") == std::string::npos);
        REQUIRE(c.four);
        CHECK(c.four->recipe == "mxfp4:scale=even");
        REQUIRE(c.eight);
        CHECK(c.eight->recipe == "mxfp8:scale=rceil");
    }
}

TEST_CASE("a tensor without elements is not an operand") {
    auto tensors = projections();
    tensors[3].elements = tensors[3].bytes = 0;
    tensors[3].shape = {0, 64};
    const judgement j = judged(tensors);
    CHECK_FALSE(j.decisions[3].operand);
    CHECK(j.decisions[3].reason == "it has no elements");
}

TEST_CASE("tensors with one storage are counted once") {
    auto tensors = projections();
    tensors[7].tied_to = tensors[3].name;
    tensors[8].tied_to = tensors[9].tied_to = "not measured";
    measured_model m = model_of(tensors);
    m.count_ties_once();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        tensors[i].counted_with = m.tensors[i].counted_with;
    }
    CHECK(tensors[7].counted_with == 3);
    CHECK_FALSE(tensors[8].counted_with);
    CHECK(tensors[9].counted_with == 8);
    judgement j = judged(tensors);
    CHECK(j.totals.stored == 38 * 4 * 4096);
    CHECK(j.totals.recommended == 38 * 4096 * 33 / 32);
    CHECK(j.classes.front().bytes == j.totals.stored);
    CHECK(j.decisions[7].recipe == "mxfp8:scale=rceil");
    // One of them is quantized and the other is not: then both take bytes.
    alter(tensors[7], "mxfp8:scale=rceil", [](analysis::result& f) { f.clamp_rate = 0.2; });
    j = judged(tensors);
    CHECK(j.decisions[7].recipe == keep_choice);
    CHECK(j.decisions[7].bytes == 4 * 4096);
}

TEST_CASE("four bits need a task, and a task decides") {
    const auto tensors = projections();
    CHECK(chosen(judged(tensors)) == "mxfp8:scale=rceil");
    const auto on_task = [](double value) {
        return std::vector<score>{{codec::parse_recipe("nvfp4"), "perplexity", value, 5.0, false}};
    };
    const judgement good = judged(tensors, "inference", "any", on_task(5.04));
    CHECK(chosen(good) == "nvfp4");
    CHECK(good.confidence == "perplexity 5 to 5.04 (0.80 % worse)");
    const judgement bad = judged(tensors, "inference", "any", on_task(5.06));
    CHECK(chosen(bad) == "mxfp8:scale=rceil");
    CHECK(bad.confidence == "tensor error only");
    // A task that rules out the only safe recipe is the reason, and what the verdict rests on.
    const judgement none =
        judged(tensors, "inference", "any",
               {{codec::parse_recipe("mxfp8:scale=rceil"), "perplexity", 5.07, 5.0, false},
                {codec::parse_recipe("mxint8"), "perplexity", 5.01, 5.0, false}});
    CHECK(chosen(none) == "keep");
    CHECK(class_of(none, "weight").reason ==
          "mxfp8:scale=rceil is ruled out: perplexity 5 to 5.07 (1.40 % worse)");
    CHECK(none.confidence == "perplexity 5 to 5.07 (1.40 % worse)");
    CHECK(none.unused_scores == std::vector<std::string>{"mxint8"});
    // Too few tokens decide nothing.
    for (const char* recipe : {"nvfp4", "mxfp8:scale=rceil"}) {
        const judgement few =
            judged(tensors, "inference", "any",
                   {{codec::parse_recipe(recipe), "perplexity", 5.04, 5.0, false, 0.002}});
        CHECK(chosen(few) == "mxfp8:scale=rceil");
        for (const class_recipe& r : class_of(few, "weight").candidates) {
            if (r.recipe != recipe) continue;
            CHECK(r.scored ==
                  "perplexity 5 to 5.04 (0.80 % worse, standard error 0.20 %); too few tokens to "
                  "tell it from the limit of 1.00 %");
        }
    }
    // A smaller recipe that a task found safe replaces the larger one.
    CHECK(chosen(judged(projections({"nvfp4"}), "inference", "any", on_task(5.04))) == "nvfp4");
    // Vetoes stay: of the safe ones the tensor gets the next.
    auto one_bad = tensors;
    alter(one_bad[3], "nvfp4", [](analysis::result& f) { f.sqnr_db -= 4; });
    CHECK(judged(one_bad, "inference", "any", on_task(5.04)).decisions[3].recipe ==
          "mxfp8:scale=rceil");
}

TEST_CASE("gradients that lose energy in elements that become zero never get few bits") {
    const std::vector<std::string> recipes{"mxfp8:scale=rceil", "mxfp6:scale=even",
                                           "mxfp4:scale=even", "nvfp4",
                                           "mxfp4:scale=even,round=stochastic,transform=hadamard"};
    std::vector<tested_tensor> tensors{normal_tensor("dy", "gradient", {512, 64}, recipes)};
    for (analysis::result& r : tensors[0].measured) {
        r.crest_factor = 60;
        if (r.under->name.starts_with("mxfp8")) continue;
        r.nrmse = 0.2;
        r.underflow_error_share = 0.6;
    }
    CHECK(default_policy(model_of(tensors).tensors) == "training");
    const judgement j = judged(tensors, "training");
    CHECK(chosen(j, "gradient") == "mxfp8:scale=rceil");
    const class_judgement& c = class_of(j, "gradient");
    REQUIRE(c.six);
    CHECK(c.six->vetoed.size() == 1);
    // Rounded at random, small elements are kept in the mean.
    REQUIRE(c.four);
    CHECK(c.four->recipe == "mxfp4:scale=even,round=stochastic,transform=hadamard");
    CHECK(c.four->vetoed.empty());
    CHECK(c.four->is == verdict::evaluate);
    // E4M3 as well, from 0.2 % of the energy on; results without the parts of the error do not say.
    alter(tensors[0], "mxfp8:scale=rceil", [](analysis::result& f) { f.nrmse = 0.142; });
    CHECK(chosen(judged(tensors, "training"), "gradient") == "mxfp8:scale=rceil");
    alter(tensors[0], "mxfp8:scale=rceil",
          [](analysis::result& f) { f.underflow_error_share = 0.1; });
    CHECK(chosen(judged(tensors, "training"), "gradient") == "keep");
    // Inference keeps gradients.
    CHECK(judged(tensors).classes.empty());
}

TEST_CASE(
    "of a dump of a training step the operands of products are judged, not results and inputs of "
    "norms") {
    std::vector<tested_tensor> tensors{normal_tensor("q.x", "activation", {96, 64}),
                                       normal_tensor("q.weight", "weight", {64, 64}),
                                       normal_tensor("q.dy", "gradient", {96, 64}),
                                       normal_tensor("norm.weight", "norm", {64}),
                                       normal_tensor("norm.x", "activation", {96, 64}),
                                       normal_tensor("grad.q.weight", "gradient", {64, 64})};
    const judgement j = judged(tensors, "training");
    CHECK(j.of_a_step);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        CAPTURE(tensors[i].name);
        CHECK(j.decisions[i].operand == (i < 3));
    }
    tensors.erase(tensors.begin() + 2);  // without dy: activations and gradients of no known step
    const judgement others = judged(tensors, "training");
    CHECK_FALSE(others.of_a_step);
    CHECK(others.decisions[3].operand);
    CHECK(others.decisions[4].operand);
}

TEST_CASE("activations with outlier channels keep eight bits") {
    auto tensors = std::vector{normal_tensor("x", "activation", {96, 64})};
    for (const char* r : {"mxfp4:scale=even", "nvfp4"}) {
        alter(tensors[0], r, [](analysis::result& f) { f.sqnr_db -= 4; });
    }
    const judgement j = judged(tensors, "inference", "b200");
    CHECK(chosen(j, "activation") == "mxfp8:scale=rceil");
    CHECK(j.risks.front().is == verdict::safe);
    CHECK(class_of(j, "activation").four->vetoed.size() == 1);
}

TEST_CASE("the best recipe of each width is named, whatever the policy says of it") {
    auto recipes = usual;
    recipes.insert(recipes.end(), {"mxint8", "mxfp4", "mxfp8_e5m2:scale=rceil", "fp8_1x128"});
    auto tensors = std::vector{normal_tensor("a", "weight", {128, 128}, recipes),
                               normal_tensor("b", "weight", {128, 128}, recipes)};
    const judgement any = judged(tensors);
    const class_judgement& c = class_of(any, "weight");
    REQUIRE((c.four && c.six && c.eight));
    CHECK(c.four->recipe == "nvfp4");
    CHECK(c.six->recipe == "mxfp6:scale=even");
    // MXINT8 is more exact but no hardware supports it; the policy's own is close enough to
    // fp8_1x128.
    CHECK(c.eight->recipe == "mxfp8:scale=rceil");
    CHECK(c.eight->is == verdict::safe);
    const judgement amd = judged(tensors, "inference", "mi355x");
    CHECK(class_of(amd, "weight").four->recipe == "mxfp4:scale=even");
    CHECK(class_of(amd, "weight").four->on_target == support::native);
}

TEST_CASE("a class's error that is one tensor's is said to be") {
    auto tensors = projections({"mxfp8:scale=rceil"});
    CHECK_FALSE(class_of(judged(tensors), "weight").candidates.front().dominant);
    alter(tensors[5], "mxfp8:scale=rceil", [](analysis::result& f) { f.nrmse *= 10; });
    CHECK(class_of(judged(tensors), "weight").candidates.front().dominant == std::size_t{5});
}

TEST_CASE("MXFP6 is a candidate only where it is native") {
    const auto tensors = projections();
    const auto offered = [&](std::string_view target) {
        const judgement j = judged(tensors, "inference", target);
        return std::ranges::any_of(class_of(j, "weight").candidates, [](const class_recipe& r) {
            return r.recipe == "mxfp6:scale=even";
        });
    };
    CHECK(offered("b200"));
    CHECK(offered("mi355x"));
    CHECK_FALSE(offered("any"));
    CHECK_FALSE(offered("torchao"));
    CHECK_FALSE(offered("compressed-tensors"));
}

TEST_CASE("a target's own way of scaling is what has to be measured") {
    auto recipes = usual;
    CHECK(chosen(judged(projections(recipes), "inference", "compressed-tensors")) == "undecided");
    recipes.push_back("mxfp8:dialect=compressed-tensors");
    CHECK(chosen(judged(projections(recipes), "inference", "compressed-tensors")) ==
          "mxfp8:dialect=compressed-tensors");
}

TEST_CASE("targets say what they lack") {
    CHECK_THROWS_AS(find_target("b300"), base::error);
    CHECK(support_of(find_target("mi355x"), "nvfp4").is == support::absent);
    CHECK_FALSE(supported_anywhere("mxint8"));
}

TEST_CASE("what is stored in few bits already stays, and each recipe is measured against it") {
    for (const double bits : {4.25, 4.5, 8.0, 8.5, 8.75}) {
        CAPTURE(bits);
        auto tensors = projections();
        for (const std::size_t i : {3U, 4U}) {
            tensors[i].bytes = static_cast<std::uint64_t>(bits * 4096 / 8);
        }
        const judgement j = judged(tensors);
        CHECK(j.decisions[3].recipe == keep_choice);
        CHECK(j.decisions[3].quantized);
        CHECK(j.decisions[3].bytes == tensors[3].bytes);
        CHECK(
            j.decisions[3].reason ==
            fmt::format("already stored in {:.4g} bits per element; keeping loses nothing", bits));
        CHECK(j.totals.recommended == 38 * 4096 * 33 / 32 + 2 * tensors[3].bytes);
        REQUIRE(j.classes.size() == 2);
        CHECK(j.classes[1].quantized);
        CHECK_FALSE(j.classes[1].chosen);
        CHECK_FALSE(j.classes[1].undecided);
        REQUIRE(j.classes[1].candidates.size() == 3);
        CHECK(j.classes[1].candidates[0].bytes == 2 * 4096 * 33 / 32);
    }
    // A policy of an earlier version does not set the limit, and has none.
    mx::policy::policy without = find_policy("inference");
    std::erase_if(without.rules, [](const rule& r) { return r.setting == "quantized_bits"; });
    auto tensors = projections();
    tensors[3].bytes = 4096 * 35 / 32;  // 8.75 bits
    CHECK(judge(tensors, without, find_target("any")).decisions[3].recipe == "mxfp8:scale=rceil");
}

TEST_CASE("weights that a recipe holds exactly need no evaluation") {
    auto tensors = projections();
    for (tested_tensor& t : tensors) alter(t, "mxfp4:scale=even", make_exact);
    CHECK(chosen(judged(tensors)) == "mxfp4:scale=even");
    CHECK(class_of(judged(tensors), "weight").reason == "mxfp4:scale=even suits 40 of 40 tensors");
    // Neither do recipes that the policy does not name.
    for (tested_tensor& t : tensors) alter(t, "mxfp6:scale=even", make_exact);
    REQUIRE(class_of(judged(tensors), "weight").six);
    CHECK(class_of(judged(tensors), "weight").six->is == verdict::safe);
    // One tensor that changes is enough.
    tensors[7] = normal_tensor(tensors[7].name, "weight", {64, 64});
    CHECK(chosen(judged(tensors)) == "mxfp8:scale=rceil");
    // A dump of activations is a sample.
    auto dumped = projections();
    for (tested_tensor& t : dumped) {
        t.role = "activation";
        alter(t, "mxfp4:scale=even", make_exact);
    }
    CHECK(class_of(judged(dumped), "activation").candidates[0].recipe == "mxfp8:scale=rceil");
    CHECK(judged(dumped).decisions[0].recipe == "mxfp8:scale=rceil");
    // In a training weights change.
    auto trained = projections();
    for (tested_tensor& t : trained) alter(t, "mxfp4:scale=even", make_exact);
    CHECK(judged(trained, "training").decisions[0].recipe != "mxfp4:scale=even");
}

TEST_CASE("the default policy follows what the file holds") {
    const auto by_default = [](const std::vector<tested_tensor>& tensors) {
        return default_policy(model_of(tensors).tensors);
    };
    CHECK(by_default(projections()) == "inference");
    CHECK(by_default({normal_tensor("x", "activation", {4, 64})}) == "inference");
    CHECK(by_default({normal_tensor("m", "optimizer", {4, 64})}) == "training");
    CHECK(judged({}).classes.empty());
    CHECK(judged({}).totals.ratio() == 1);
}

}  // namespace
