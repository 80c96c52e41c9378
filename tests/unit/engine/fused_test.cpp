// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/fused.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

using mx::engine::fused_name;

TEST_CASE("Matrices that engines load as one have one name") {
    const std::vector<std::vector<std::string>> together{
        {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
         "model.layers.0.self_attn.v_proj.weight"},
        {"model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj"},
        {"blk.3.attn_q.weight", "blk.3.attn_k.weight", "blk.3.attn_v.weight"},
        {"blk.3.ffn_gate.weight", "blk.3.ffn_up.weight"},
        {"blk.3.ffn_gate_exps.weight", "blk.3.ffn_up_exps.weight", "blk.3.ffn_down_exps.weight"},
        {"layers.1.attention.wq", "layers.1.attention.wk", "layers.1.attention.wv"},
        {"layers.1.feed_forward.w1", "layers.1.feed_forward.w3"},
        {"layers.*.mlp.experts.*.gate_proj", "layers.*.mlp.experts.7.down_proj.weight"},
        {"l.0.block_sparse_moe.experts.0.w1.weight", "l.0.block_sparse_moe.experts.5.w2.weight"},
    };
    std::vector<std::string> fused;
    for (const std::vector<std::string>& names : together) {
        INFO(names.front());
        fused.push_back(fused_name(names.front()));
        for (const std::string& name : names) CHECK(fused_name(name) == fused.back());
    }
    for (std::size_t i = 0; i < fused.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) CHECK(fused[i] != fused[k]);
    }
    CHECK(fused[0] == "model.layers.0.self_attn.{q,k,v}_proj.weight");
    CHECK(fused[7] == "layers.*.mlp.experts.*");
}

TEST_CASE("Experts that have scales of their own are fused one by one") {
    const auto apart = [](const char* name) {
        return fused_name(name, mx::engine::expert_fusion::apart);
    };
    CHECK(apart("layers.0.mlp.experts.1.gate_proj") == "layers.0.mlp.experts.1.{gate,up}_proj");
    CHECK(apart("layers.0.mlp.experts.1.w1") == apart("layers.0.mlp.experts.1.w3"));
    CHECK(apart("layers.0.mlp.experts.1.w1") != apart("layers.0.mlp.experts.2.w1"));
    CHECK(apart("layers.0.mlp.experts.1.w2") == "layers.0.mlp.experts.1.w2");
}

TEST_CASE("Other matrices keep their names") {
    for (const char* name :
         {"", "w2", "layers.1.feed_forward.w2", "model.layers.0.self_attn.o_proj.weight",
          "blk.3.ffn_down.weight", "blk.3.attn_output.weight", "experts", "mlp.shared_expert.x"}) {
        CHECK(fused_name(name) == name);
    }
    // A shared expert is none of the experts that a router chooses.
    CHECK(fused_name("mlp.shared_experts.gate_proj") == "mlp.shared_experts.{gate,up}_proj");
    CHECK(fused_name("a.0.wq") != fused_name("a.1.wq"));
}
