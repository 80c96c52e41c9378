// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/studies/plan/plan.hpp"
#include "tests/catch.hpp"

using namespace mx::plan;

using mx::analysis::results_input;
namespace base = mx::base;
namespace report = mx::report;

namespace {

struct part {
    std::string name;
    std::string divergence;
    int bits;
    std::string tensor = {};
};

// An evaluation of one recipe; every tensor has 100 elements of 32 bits in the file.
results_input evaluated(const std::string& weights, const std::vector<part>& parts,
                        const std::string& head = {}, const std::string& pairs = {},
                        const std::string& inputs = "none", const std::string& tail = {}) {
    std::string text = fmt::format(
        R"({{"schema":"mx.eval/1","model":"m","text":"t.npy","source":"tokens","tokens":9,"context":9,"stride":9,)"
        R"("precision":"float32","scored":8,"cross_entropy":2.5{},"results":[{{"recipe":"r {}",)"
        R"("weights":"{}","activations":"{}"}}],"parts":[)",
        head, weights, weights, inputs);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const part& p = parts[i];
        text += fmt::format(
            R"({}{{"recipe":"r {}","level":"layer","part":"{}","only_kld":{},"all_kld":0.5,)"
            R"("tensors":[{{"tensor":"{}","dtype":"F32","shape":[10,10],"elements":100,"bits":{},)"
            R"("stored_bits":3200}}]}})",
            i == 0 ? "" : ",", weights, p.name, p.divergence,
            p.tensor.empty() ? p.name + ".weight" : p.tensor, p.bits);
    }
    text += fmt::format(R"(],"pairs":[{}]{}}})", pairs, tail);
    return {"e.json", text.size(), report::read_results(text, "e.json")};
}

// a.q and a.k are fused, a.o and a.down are not.
const std::vector<part> small{{"a.q_proj", "0.03", 400},
                              {"a.k_proj", "0.05", 400},
                              {"a.o_proj", "0.06", 400},
                              {"a.down_proj", "0.01", 400}};
const std::vector<part> large{{"a.q_proj", "0.01", 800},
                              {"a.k_proj", "0.01", 800},
                              {"a.o_proj", "0.005", 800},
                              {"a.down_proj", "0.004", 800}};

template <typename... Inputs>
std::vector<results_input> all_of(Inputs... files) {
    std::vector<results_input> inputs;
    (inputs.push_back(std::move(files)), ...);
    return inputs;
}

std::vector<std::string> chosen(const measured_divergences& m, const plan& p) {
    std::vector<std::string> recipes;
    for (std::size_t t = 0; t < m.from.tensors.size(); ++t) {
        recipes.push_back(m.from.recipes[m.from.tensors[t].options[p.chosen[t]].recipe].name);
    }
    return recipes;
}

const std::string narrow = "mxfp4:scale=even", wide = "mxfp8:scale=rceil";

}  // namespace

TEST_CASE("The least sum of divergences within a budget, fused parts alike") {
    const std::vector<results_input> inputs =
        all_of(evaluated(narrow, small), evaluated(wide, large));
    const measured_divergences m = gather_divergences(inputs, {});
    REQUIRE(m.from.tensors.size() == 4);
    REQUIRE(m.from.groups.size() == 3);
    CHECK(m.from.groups[0].name == "a.{q,k,v}_proj");
    CHECK(m.places[0].layers == std::vector<std::string>{"a.q_proj", "a.k_proj"});
    CHECK(m.adds_up.recipes[0].sum == Approx(0.15));
    CHECK(m.adds_up.recipes[1].sum == Approx(0.029));
    CHECK(m.adds_up.recipes[0].together == 0.5);

    // One of 4 tensors may have 8 bits: q and k cost 2 and save 0.06, o saves 0.055.
    const plan five = make_plan(m.from, {5.0, {}});
    CHECK(chosen(m, five) == std::vector<std::string>{narrow, narrow, wide, narrow});
    CHECK(five.totals.error == Approx(0.03 + 0.05 + 0.005 + 0.01));
    CHECK(five.optimal);
    // Two: q and k save 0.06, o and down 0.061.
    const plan six = make_plan(m.from, {6.0, {}});
    CHECK(chosen(m, six) == std::vector<std::string>{narrow, narrow, wide, wide});
    CHECK(six.totals.bits == 2400);

    const measured_divergences apart = gather_divergences(inputs, {{}, false, true});
    CHECK(apart.from.groups.size() == 4);
    // o and k save 0.055 and 0.04.
    CHECK(chosen(apart, make_plan(apart.from, {6.0, {}})) ==
          std::vector<std::string>{narrow, wide, wide, narrow});
}

TEST_CASE("Stored weights are a choice of a plan by divergence if they may be kept") {
    const measured_divergences m =
        gather_divergences(all_of(evaluated(narrow, small)), {{}, true, false});
    const plan p = make_plan(m.from, {32.0, {}});
    CHECK(p.totals.error == 0);
    CHECK(p.totals.bits == 12800);
    CHECK(m.from.tensors[0].of->dtype == "F32");
    CHECK(m.from.tensors[0].of->shape == mx::tensor::shape{10, 10});
}

TEST_CASE("Pairs say how far effects add up") {
    const std::string pairs =
        R"({"recipe":"r mxfp4:scale=even","first_kld":0.02,"second_kld":0.03,"both_kld":0.06},)"
        R"({"recipe":"r mxfp4:scale=even","first_kld":0.01,"second_kld":0.01,"both_kld":0.018},)"
        R"({"recipe":"r mxfp4:scale=even","first_kld":0,"second_kld":0,"both_kld":0},)"
        R"({"recipe":"r nvfp4","first_kld":1,"second_kld":1,"both_kld":9})";
    const measured_divergences m =
        gather_divergences(all_of(evaluated(narrow, small, "", pairs)), {});
    CHECK(m.adds_up.pairs == 2);
    CHECK(m.adds_up.least_ratio == Approx(0.9));
    CHECK(m.adds_up.most_ratio == Approx(1.2));
}

TEST_CASE("Evaluations that cannot be planned with are refused by name") {
    const auto refused = [](const std::vector<results_input>& inputs, const std::string& words,
                            const divergence_request& request = {}) {
        try {
            gather_divergences(inputs, request);
            FAIL("accepted: " << words);
        } catch (const base::error& e) {
            CHECK_THAT(e.what(), Catch::Matchers::Contains(words));
        }
    };
    refused(all_of(evaluated(narrow, std::vector<part>{})), "has no parts");
    refused(all_of(evaluated(narrow, small), evaluated(narrow, small)), "has the same weights");
    refused(all_of(evaluated("mixed", small)), "parts of the model differently");
    refused(all_of(evaluated("none", small)), "no weights");
    refused(all_of(evaluated(narrow, {{"a", "null", 400}})), "has no divergence");
    refused(all_of(evaluated(narrow, {{"a", "0.1", -1}})), "no count");
    refused(all_of(evaluated(narrow, {{"a", "0.1", 400, "t"}, {"b", "0.1", 400, "t"}})),
            "'t' is not as");
    refused(all_of(evaluated(narrow, {{"a", "0.1", 400}, {"a", "0.1", 400}})), "in two parts");
    refused(all_of(evaluated(narrow, small), evaluated(wide, {{"a.q_proj", "0.01", 800}})),
            "unknown recipe", {{"mxfp9"}, false, false});

    results_input other = evaluated(wide, large);
    for (auto& [name, value] : other.content.head) {
        if (name == "text") value = std::string("u.npy");
    }
    refused(all_of(evaluated(narrow, small), std::move(other)), "another 'text'");

    // A place without a recipe of all its parts.
    refused(all_of(evaluated(narrow, {{"a.q_proj", "0.1", 400}}),
                   evaluated(wide, {{"a.k_proj", "0.1", 400}})),
            "no recipe was measured there");
    results_input analysis = evaluated(narrow, small);
    analysis.content.kind = "analysis";
    refused(all_of(std::move(analysis)), "is mx.analysis");
}

TEST_CASE("Exports carry recipes of inputs where the tool can, and say where not") {
    const std::vector<part> one{{"model.layers.0.mlp.down_proj", "0.01", 800}};
    const auto of = [&](const std::string& inputs, const char* tool) {
        const measured_divergences m =
            gather_divergences(all_of(evaluated(wide, one, {}, {}, inputs)), {});
        const plan p = make_plan(m.from, {8.0, {}});
        return exported(m.from, p, tool);
    };
    const std::string entry = R"("model.layers.0.mlp.down_proj.input_quantizer")";
    const auto has = [](const std::string& all, const std::string& what) {
        return all.find(what) != std::string::npos;
    };
    const export_text done = of("nvfp4", "modelopt");
    CHECK(done.remarks.empty());
    const std::string after = done.text.substr(done.text.find(entry));
    CHECK(has(after, R"("-1": 16)"));
    CHECK_FALSE(has(of("none", "modelopt").text, "input_quantizer"));
    const auto lost = [](const std::string& tool, const std::string& inputs) {
        return "--export " + tool + ": inputs of layers in " + inputs +
               " are not carried: set them there";
    };
    for (const char* const inputs : {"mixed", "mxfp4:scale=even", "fp8_128x128", "mxint8"}) {
        const export_text e = of(inputs, "modelopt");
        CHECK_FALSE(has(e.text, "input_quantizer"));
        CHECK(e.remarks == std::vector{lost("modelopt", inputs)});
    }
    CHECK(of(wide, "torchao").remarks.empty());  // of its own accord
    CHECK(of(narrow, "torchao").remarks == std::vector{lost("torchao", narrow)});

    const auto compressed = [&](const std::string& inputs) {
        const export_text e = of(inputs, "compressed-tensors");
        CHECK(has(e.text, "input_activations") == (inputs == "nvfp4" || inputs == narrow));
        return std::pair(e.text.substr(std::min(e.text.find("input_act"), e.text.size())),
                         e.remarks);
    };
    CHECK(compressed("none").second.size() == 1);  // of the weights' scales
    const auto [block, of_weights] = compressed(narrow);
    CHECK(of_weights.size() == 1);
    CHECK(has(block, "\"dynamic\": true"));
    CHECK(has(block, "\"group_size\": 32"));
    const std::string two_level = compressed("nvfp4").first;
    CHECK(has(two_level, "\"dynamic\": \"local\""));
    CHECK(has(two_level, "\"observer\": \"static_minmax\""));
    CHECK(compressed("fp8_128x128").second.front() == lost("compressed-tensors", "fp8_128x128"));
    const std::vector<std::string> other = of(wide, "compressed-tensors").remarks;
    REQUIRE(other.size() == 2);
    CHECK(other[0].starts_with("--export compressed-tensors: inputs of layers in " + wide +
                               ": its scales are even"));
}

TEST_CASE("Exports to llama.cpp name the embedding and the head") {
    const std::vector<part> one{{"model.layers.0.mlp.down_proj", "0.01", 800}};
    const std::string kept =
        R"(,"kept":[{"tensor":"model.embed_tokens.weight","dtype":"BF16","shape":[20,10],)"
        R"("elements":200,"bits":3200,"stored_bits":3200},{"tensor":"lm_head.weight",)"
        R"("dtype":"F32","shape":[20,10],"elements":200,"bits":6400,"stored_bits":6400}])";
    // Those of the first file only: the others are of the same model.
    const measured_divergences m =
        gather_divergences(all_of(evaluated(wide, one, {}, {}, "none", kept),
                                  evaluated(narrow, one, {}, {}, "none", kept)),
                           {{}, true, false});
    CHECK(m.from.elements() == 100);
    const plan p = make_plan(m.from, {32.0, {}});
    CHECK(exported(m.from, p, "llama.cpp").text ==
          "--tensor-type ^blk.0.ffn_down.weight=f32\n--tensor-type ^token_embd.weight=bf16\n"
          "--tensor-type ^output.weight=f32\n");
}
