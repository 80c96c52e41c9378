// SPDX-License-Identifier: Apache-2.0
// Verdicts on measured models: synthetic checkpoints, and small models made here.
#include "libmx/pages/verdict.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "datasets/generators/checkpoint_plan.hpp"
#include "datasets/generators/write_checkpoint.hpp"
#include "libmx/analysis/analyze.hpp"
#include "libmx/base/random.hpp"
#include "libmx/engine/model.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

// The recipes that `mx analyze` would measure, and some that it would not.
const std::vector<std::string> measured_recipes{
    "mxfp8:scale=rceil", "mxfp8", "mxfp6:scale=even", "nvfp4",
    "mxfp4:scale=even",  "mxfp4", "mxfp8_e5m2"};

policy::judged_model judged(const std::vector<engine::tensor_ref>& tensors,
                            const policy::basis& by = {}) {
    analysis::analysis_request request;
    request.recipes = codec::parse_recipes(measured_recipes);
    const analysis::analysis a = analysis::analyze(tensors, request, {});
    report::list skipped;
    for (const engine::skipped_tensor& s : a.skipped) {
        skipped.emplace_back(report::record{{"file", s.file},
                                            {"tensor", s.tensor},
                                            {"reason", s.reason},
                                            {"dtype", s.dtype},
                                            {"bytes", report::tally(s.bytes)}});
    }
    return policy::judge_model(a.results, {{"skipped", std::move(skipped)}}, by);
}

// Normal numbers.
std::vector<float> normal(std::size_t count, std::uint32_t key) {
    std::vector<float> x;
    for (std::uint32_t i = 0; x.size() < count; ++i) {
        const base::philox_words w = base::philox4x32_10({{i, key, 0, 0}}, 3, 0);
        const double u = (w.word[0] + 0.5) / 0x1p32, v = (w.word[1] + 0.5) / 0x1p32;
        x.push_back(static_cast<float>(0.02 * std::sqrt(-2 * std::log(u)) *
                                       std::cos(2 * std::numbers::pi * v)));
    }
    return x;
}

const policy::decision& decision_on(const policy::judged_model& m, const std::string& name) {
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        if (m.tensors[i].name == name) return m.says.decisions[i];
    }
    FAIL(name);
    return m.says.decisions.front();
}

// No operand is given a recipe that saturates a hundredth of its blocks, and no weight one with
// twice the squared error of normal data: in gradients that can be the rounding of one element.
void check_recommended(const policy::judged_model& m) {
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        const policy::decision& d = m.says.decisions[i];
        CAPTURE(m.tensors[i].name, d.role, d.recipe, d.reason);
        if (!d.column) continue;
        CHECK(d.operand);
        const analysis::result r = m.table.of(i, *d.column);
        if (d.role == "weight") CHECK_FALSE(d.over_normal >= 2);
        CHECK_FALSE(r.saturated_block_rate >= 0.01);
        CHECK_FALSE(r.clamp_rate >= 0.01);
    }
}

}  // namespace

TEST_CASE("verdicts on synthetic checkpoints give recipes to operands of products alone") {
    const char* preset = GENERATE("tiny", "layernorm", "linear");
    const std::uint64_t seed = GENERATE(0, 7);
    CAPTURE(preset, seed);
    namespace fs = std::filesystem;
    const fs::path path =
        fs::temp_directory_path() / ("mx-verdict-" + std::to_string(::getpid()) + ".safetensors");
    synth::write_checkpoint(path.string(), synth::plan_checkpoint(synth::find_preset(preset), {}),
                            seed, {}, {});
    {
        const engine::model model({path.string()}, {}, {});
        const policy::judged_model m = judged(model.select({}));
        check_recommended(m);
        const std::set<std::string> quantized{"weight", "activation", "gradient"};
        std::size_t given = 0;
        for (std::size_t i = 0; i < m.tensors.size(); ++i) {
            const policy::decision& d = m.says.decisions[i];
            CAPTURE(m.tensors[i].name, d.role, d.recipe);
            if (quantized.count(d.role) == 0) CHECK(d.recipe == policy::keep_choice);
            CHECK_FALSE(d.undecided);
            given += d.column ? 1u : 0u;
        }
        CHECK(given > 0);
        CHECK(m.says.policy_name ==
              (std::string(preset) == "layernorm" ? "inference" : "training"));
        CHECK(m.says.totals.recommended < m.says.totals.stored);
    }
    fs::remove(path);
}

TEST_CASE("of a trained model the matrices are quantized, and all else keeps its precision") {
    const engine::model model(
        {std::string(MX_SOURCE_DIR) + "/datasets/vectors/excerpts/memory_gated_mlp.safetensors"},
        {}, {});
    const policy::judged_model m = judged(model.select({}));
    check_recommended(m);
    std::size_t quantized = 0;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        const policy::decision& d = m.says.decisions[i];
        CAPTURE(m.tensors[i].name, d.role, d.recipe);
        CHECK(d.recipe == (d.role == "weight" ? "mxfp8:scale=rceil" : "keep"));
        quantized += d.column ? 1u : 0u;
    }
    CHECK(quantized == 9);
    // E2M1 is compared with E2M1 on normally distributed data, which it reaches: four bits are not
    // "no".
    REQUIRE(m.says.classes.size() == 1);
    REQUIRE(m.says.classes[0].four);
    CHECK(m.says.classes[0].four->preset == "nvfp4");
    CHECK(m.says.classes[0].four->is == policy::verdict::evaluate);
    CHECK(m.says.classes[0].four->normal_db - m.says.classes[0].four->sqnr_db < 0.5);
}

TEST_CASE("a planted projection leads the risks; norms, biases, routers and buffers are kept") {
    tests::memory_model model;
    const auto f32 = tensor::dtype::f32;
    for (std::uint32_t layer = 0; layer < 6; ++layer) {
        const std::string at = "model.layers." + std::to_string(layer);
        for (const char* name : {"q_proj", "up_proj", "down_proj"}) {
            std::vector<float> x = normal(128 * 64, 16 * layer + static_cast<std::uint32_t>(*name));
            // From 433 to 434: e4m3 makes 448 of all, and every block saturates.
            const bool planted = layer == 3 && std::string(name) == "down_proj";
            for (std::size_t i = 0; i < x.size() && planted; ++i) {
                x[i] = 433 + static_cast<float>(i % 32) / 32;
            }
            model.add(at + ".mlp." + name + ".weight", f32, {128, 64}, x);
        }
        std::vector<float> gains;
        for (int i = 0; i < 64; ++i) gains.push_back(0.95F + 0.001F * static_cast<float>(i));
        model.add(at + ".input_layernorm.weight", f32, {64}, gains);
        model.add(at + ".mlp.gate.weight", f32, {8, 64}, normal(8 * 64, 900 + layer));
        model.add(at + ".mlp.up_proj.bias", f32, {128}, normal(128, 800 + layer));
    }
    model.add("embeddings.position_ids", tensor::dtype::boolean, {1, 512},
              std::vector<std::uint8_t>(512));
    const policy::judged_model m = judged(model.all());
    const std::string planted = "model.layers.3.mlp.down_proj.weight";
    REQUIRE_FALSE(m.says.risks.empty());
    CHECK(m.tensors[m.says.risks.front().tensor].name == planted);
    CHECK(m.says.risks.front().over_normal > 1.5);
    CHECK(decision_on(m, planted).recipe == policy::keep_choice);
    check_recommended(m);
    std::uint64_t kept = 128 * 64 * 4;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        const policy::decision& d = m.says.decisions[i];
        CAPTURE(m.tensors[i].name, d.role, d.recipe);
        const bool weight = d.role == "weight" && m.tensors[i].name != planted;
        CHECK(d.recipe == (weight ? "mxfp8:scale=rceil" : "keep"));
        if (d.role != "weight") kept += m.tensors[i].bytes;
    }
    CHECK(m.says.totals.kept == kept);
    CHECK(pages::verdict_line(m).find("worst: " + planted) != std::string::npos);
    const auto sections = pages::verdict_sections(m, {});
    REQUIRE(sections.size() >= 3);
    CHECK(sections[2].notes.front().text.rfind(planted + " has 100 % of its blocks saturated", 0) ==
          0);
}

TEST_CASE("tensors without whole blocks are kept, and the page says what padding would change") {
    tests::memory_model model;
    model.add("a.weight", tensor::dtype::f32, {64, 64}, normal(64 * 64, 1));
    model.add("b.weight", tensor::dtype::f32, {64, 172}, normal(64 * 172, 2));
    const policy::judged_model m = judged(model.all());
    CHECK(decision_on(m, "b.weight").recipe == policy::keep_choice);
    CHECK(decision_on(m, "b.weight").reason.find("padded to 192") != std::string::npos);
    const auto sections = pages::verdict_sections(m, {});
    std::vector<std::string> words;
    for (const report::note& n : sections[0].notes) words.push_back(n.text);
    CHECK(words[0].find("mxfp8:scale=rceil for 1 of 2 weight tensors: ") == 0);
    CHECK(words[1] ==
          "Keep 1 operand as stored (72.88 % of the bytes): K = 172 is not a multiple of the "
          "block.");
    // The reason is stated once, in the table.
    REQUIRE(sections[1].rows.size() == 2);
    CHECK(report::text_of(sections[1].rows[1], "reason") ==
          "K = 172 is not a multiple of 32; padded to 192 it costs 11.6 % more");
    const std::string assumed =
        "[out, in] is assumed: blocks run along the last axis of 2 weights (--transpose, axis=).";
    CHECK(std::count(words.begin(), words.end(), assumed) == 1);
}

TEST_CASE("convolutions need no recipes of their own") {
    policy::measured_tensor conv;
    conv.name = "conv.weight";
    conv.role = "weight";
    conv.shape = {512, 256, 5};
    const policy::policy by = policy::find_policy("inference");
    const auto recipes = policy::recipes_to_measure(by, policy::find_target("any"), {&conv, 1});
    std::vector<std::string> names;
    for (const codec::recipe& r : recipes) names.push_back(codec::to_string(r));
    CHECK(names == std::vector<std::string>{"mxfp8:scale=rceil", "mxfp6:scale=even", "nvfp4",
                                            "mxfp4:scale=even"});
    CHECK(policy::recipes_to_measure(by, policy::find_target("mi355x"), {}).size() == 3);
}

TEST_CASE("norms are measured by their error against the spread of their gains") {
    tests::memory_model model;
    // Equally many of 1 and of 1 + 1/16, between two values of E2M1: all become 1.
    std::vector<float> gains(64, 1.0F);
    for (std::size_t i = 0; i < gains.size(); i += 2) gains[i] = 1.0625F;
    model.add("a.norm.weight", tensor::dtype::f32, {64}, gains);
    model.add("b.norm.weight", tensor::dtype::f32, {64}, std::vector<float>(64, 1.0F));
    model.add("w.weight", tensor::dtype::f32, {64, 64}, normal(64 * 64, 3));
    const float bias = GENERATE(0.0F, 1.0F);
    analysis::analysis_request request;
    request.recipes = codec::parse_recipes({"mxfp4:scale=even"});
    request.norm_bias = bias;
    const analysis::analysis a = analysis::analyze(model.all(), request, {});
    REQUIRE(a.results.size() == 3);
    // The standard deviation is 1/32.
    CHECK(a.results[0].spread_error == Approx(a.results[0].rmse * 32));
    CHECK(a.results[0].spread_error > 1);
    CHECK(std::isnan(a.results[1].spread_error));
    CHECK(std::isnan(a.results[2].spread_error));
}
