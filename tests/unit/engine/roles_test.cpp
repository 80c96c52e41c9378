// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/roles.hpp"

#include <fstream>
#include <sstream>

#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx;

std::string role_of(std::string name, tensor::shape shape, const engine::role_finder& finder) {
    io::tensor_info info;
    info.name = std::move(name);
    info.shape = std::move(shape);
    return std::string(finder.role_of(info));
}

// Families, their sources, and names with their roles: role_names.txt.
TEST_CASE("names of published models tell the role") {
    std::ifstream file(std::string(MX_SOURCE_DIR) + "/tests/unit/engine/role_names.txt");
    REQUIRE(file.good());
    const engine::role_finder find;
    std::string family;
    std::size_t families = 0, names = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.front() == '#') {
            families += line.find(": ") != std::string::npos ? 1u : 0u;
            family = line;
            continue;
        }
        std::istringstream words(line);
        std::string role, name;
        std::size_t axes = 0;
        words >> role >> axes >> name;
        REQUIRE_FALSE(name.empty());
        CAPTURE(family, name);
        CHECK(role_of(name, tensor::shape(axes, 64), find) == role);
        CHECK(engine::role_by_name(name, tensor::shape(axes, 64)).known);
        ++names;
    }
    CHECK(families >= 60);
    CHECK(names >= 1200);
}

TEST_CASE("names that only look like a role's") {
    const engine::role_finder find;
    struct example {
        const char* name;
        tensor::shape shape;
        const char* role;
    };
    const example examples[] = {
        {"dec_emb", {74, 256}, "embedding"},
        {"enc_w_ih", {768, 256}, "weight"},
        {"norm.weight", {64}, "norm"},
        {"blk.0.ffn_gate.weight", {172, 64}, "weight"},
        {"layers.3.ffn.gate.weight", {256, 7168}, "router"},
        {"mtp.0.ffn.gate.weight", {256, 7168}, "router"},
        {"model.layers.0.mlp.gate_proj.weight", {172, 64}, "weight"},
        {"gradients.layers.1.mlp.gate.weight", {64, 2048}, "gradient"},
        {"model.layers.0.mlp.shared_expert_gate.weight", {1, 2048}, "router"},
        {"blk.0.attn_k_b.weight", {64, 64}, "weight"},
        {"blk.0.ssm_beta.weight", {64, 64}, "weight"},
        {"blk.0.time_mix_key.weight", {64, 64}, "weight"},
        {"rwkv.blocks.0.attention.time_mix_key", {1, 1, 64}, "other"},
        {"model.embed_tokens_per_layer.weight", {512, 64}, "embedding"},
        {"model.vision.patch_embedding.position_embedding.weight", {16, 64}, "embedding"},
        {"embed_model.layers.0.self_attn.q_proj.weight", {64, 64}, "weight"},
        {"model.layers.0.mlp.expert_gate.weight", {8, 64}, "router"},
        {"model.layers.0.mlp.experts.0.gate.weight", {64, 64}, "weight"},
        {"layers.0.mlp.switch.gate.weight", {8, 64}, "router"},
        {"layers.0.attn.attn_sink", {64}, "other"},
        {"layers.0.hc_attn_fn", {24, 64}, "other"},
        {"norm.weight.scales", {2, 4}, "other"},
        {"norm.weight.global_scale", {}, "other"},
        {"some_vector", {100}, "other"},
        {"some_matrix", {100, 64}, "weight"},
    };
    for (const example& e : examples) {
        CAPTURE(e.name);
        CHECK(role_of(e.name, e.shape, find) == e.role);
    }
}

TEST_CASE("a name without a role is said to have none") {
    const tensor::shape matrix{64, 64}, vector{64};
    CHECK_FALSE(engine::role_by_name("some_matrix", matrix).known);
    CHECK_FALSE(engine::role_by_name("some_vector", vector).known);
    CHECK(engine::role_by_name("model.layers.0.mlp.up_proj.weight", matrix).known);
    // A vector with the name of a matrix is no weight, but its name is known.
    CHECK(engine::role_by_name("model.layers.0.mlp.up_proj.weight", vector).name == "other");
    CHECK(engine::role_by_name("model.layers.0.mlp.up_proj.weight", vector).known);
    io::tensor_info info;
    info.name = "some_matrix";
    info.shape = matrix;
    const engine::role_finder find({engine::parse_role_override("weight=some_*")});
    CHECK(find.find(info).known);
    CHECK(engine::unknown_roles_text(0, "").empty());
    CHECK(engine::unknown_roles_text(2, "a") ==
          "2 tensors have no known role ('a', ...): a matrix counts as a weight, anything else is "
          "kept (--role-pattern ROLE=GLOB).");
}

TEST_CASE("what is no numbers is no weight") {
    io::tensor_info mask;
    mask.name = "model.some_matrix";
    mask.shape = {96, 96};
    mask.type = tensor::dtype::boolean;
    CHECK(engine::role_finder().role_of(mask) == "other");
    mask.type = tensor::dtype::bf16;
    CHECK(engine::role_finder().role_of(mask) == "weight");
}

TEST_CASE("the user's patterns go before the built-in ones") {
    const engine::role_finder find({engine::parse_role_override("norm=some_*"),
                                    engine::parse_role_override("activation=*q_proj.weight")});
    CHECK(role_of("some_vector", {100}, find) == "norm");
    CHECK(role_of("layers.0.q_proj.weight", {4, 4}, find) == "activation");
    CHECK(role_of("layers.0.k_proj.weight", {4, 4}, find) == "weight");
    const std::vector<engine::role_override> misspelt{{"nrom", "*"}};
    CHECK_THROWS_AS(engine::role_finder(misspelt), base::error);
    CHECK_THROWS_AS(engine::parse_role_override("norm"), base::error);
    CHECK_THROWS_AS(engine::parse_role_override("=x"), base::error);
    CHECK_THROWS_AS(engine::parse_role_override("norm="), base::error);
}

TEST_CASE("layers are numbers that stand alone in a name") {
    const auto place = engine::layer_of("model.layers.12.mlp.up_proj.weight");
    REQUIRE(place);
    CHECK(place->layer == 12);
    CHECK(place->series == "model.layers.*.mlp.up_proj.weight");
    CHECK(engine::layer_of("rnn_2/rnn_2/kernel:0")->layer == 2);
    CHECK(engine::layer_of("w.3")->series == "w.*");
    CHECK_FALSE(engine::layer_of("output/output/kernel:0"));
    CHECK_FALSE(engine::layer_of("conv1d/kernel"));
    CHECK_FALSE(engine::layer_of("layers.99999999999999999999999.w"));
    CHECK_FALSE(engine::layer_of(""));
}

}  // namespace
