// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/roles.hpp"

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

TEST_CASE("names of checkpoints in use tell the role") {
    const engine::role_finder find;
    struct example {
        const char* name;
        tensor::shape shape;
        const char* role;
    };
    const example examples[] = {
        {"model.layers.0.input_layernorm.weight", {64}, "norm"},
        {"layers.3.ffn_norm.weight", {64}, "norm"},
        {"transformer.blocks.0.ln1.w", {128}, "norm"},
        {"transformer.ln_final.w", {128}, "norm"},
        {"transformer.h.0.ln_1.weight", {768}, "norm"},
        {"model/layer_normalization_1/mul/ReadVariableOp:0", {512}, "norm"},
        {"norm.weight", {64}, "norm"},
        {"encoder/LayerNorm/gamma", {512}, "norm"},
        {"transformer.blocks.0.ln1.b", {128}, "bias"},
        {"model/layer_normalization_1/add/ReadVariableOp:0", {512}, "bias"},
        {"model/dense/BiasAdd/ReadVariableOp:0", {64}, "bias"},
        {"transformer.blocks.0.attn.b_Q", {4, 32}, "bias"},
        {"rnn_1/rnn_1/bias:0", {1024}, "bias"},
        {"encoder/LayerNorm/beta", {512}, "bias"},
        {"model.embed_tokens.weight", {512, 64}, "embedding"},
        {"tok_embeddings.weight", {512, 64}, "embedding"},
        {"dec_emb", {74, 256}, "embedding"},
        {"action_embedding.0.weight", {8, 128}, "embedding"},
        {"transformer.wte.weight", {50257, 768}, "embedding"},
        {"model.layers.1.mlp.experts.gate_up_proj", {4, 172, 64}, "weight"},
        {"model/conv1d/Conv1D/ExpandDims_1:0", {512, 256, 1, 5}, "weight"},
        {"enc_w_ih", {768, 256}, "weight"},
        {"transformer.blocks.1.attn.W_Q", {4, 128, 32}, "weight"},
        {"model.layers.1.mlp.gate.weight", {64, 2048}, "router"},
        {"layers.3.ffn.gate.weight", {256, 7168}, "router"},
        {"model.layers.0.block_sparse_moe.gate.weight", {8, 4096}, "router"},
        {"model.layers.0.feed_forward.router.weight", {16, 5120}, "router"},
        {"model.layers.0.mlp.router.weight", {32, 2880}, "router"},
        {"model.layers.0.mlp.shared_expert_gate.weight", {1, 2048}, "router"},
        {"blk.0.ffn_gate_inp.weight", {8, 4096}, "router"},
        {"model.layers.0.mlp.router.bias", {32}, "bias"},
        {"model.layers.3.mlp.gate.e_score_correction_bias", {256}, "bias"},
        {"model.layers.0.mlp.gate_proj.weight", {172, 64}, "weight"},
        {"model.layers.1.mlp.experts.0.gate_proj.weight", {172, 64}, "weight"},
        {"blk.0.ffn_gate.weight", {172, 64}, "weight"},
        {"blk.0.ffn_gate_exps.weight", {8, 172, 64}, "weight"},
        {"gradients.layers.1.mlp.gate.weight", {64, 2048}, "gradient"},
        {"activations.layers.2.mlp.down_proj.input", {96, 172}, "activation"},
        {"hidden_states", {96, 172}, "activation"},
        {"past_key_values.0.key", {1, 8, 96, 64}, "k_cache"},
        {"past_key_values.0.value", {1, 8, 96, 64}, "v_cache"},
        {"past_key_values.11.0", {1, 8, 96, 64}, "k_cache"},
        {"past_key_values.11.1", {1, 8, 96, 64}, "v_cache"},
        {"present.3.key", {1, 8, 96, 64}, "k_cache"},
        {"cache_k_l0", {96, 512}, "k_cache"},
        {"cache_v_l12", {96, 512}, "v_cache"},
        {"layers.0.attention.cache_k", {1, 96, 8, 64}, "k_cache"},
        {"key_cache.0", {1, 8, 96, 64}, "k_cache"},
        {"layers.4.self_attn.v_cache", {1, 8, 96, 64}, "v_cache"},
        {"decoder/layers_0/self_attention/cached_value", {1, 96, 8, 64}, "v_cache"},
        {"model.layers.0.self_attn.k_proj.weight", {512, 512}, "weight"},
        {"model.layers.0.self_attn.k_scale", {}, "other"},
        {"gradients.layers.0.input_layernorm.weight", {64}, "gradient"},
        {"layers.0.mlp.up_proj.weight.grad", {64, 64}, "gradient"},
        {"state.0.exp_avg_sq", {64, 64}, "optimizer"},
        {"model.logit_scale", {}, "other"},
        {"model.rotary_emb.inv_freq", {8}, "other"},
        {"some_vector", {100}, "other"},
    };
    for (const example& e : examples) {
        CAPTURE(e.name);
        CHECK(role_of(e.name, e.shape, find) == e.role);
    }
}

TEST_CASE("what is no numbers is no weight") {
    io::tensor_info mask;
    mask.name = "model.causal_mask";
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
