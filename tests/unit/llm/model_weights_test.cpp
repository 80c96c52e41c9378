// SPDX-License-Identifier: Apache-2.0
#include "libmx/llm/model_weights.hpp"

#include <string>
#include <utility>

#include "tests/catch.hpp"

using mx::llm::gguf_name;

TEST_CASE("Matrices of three conventions have one name in GGUF") {
    for (const auto& [name, in_gguf] : {
             std::pair("model.layers.10.self_attn.q_proj.weight", "blk.10.attn_q.weight"),
             std::pair("layers.4.feed_forward.w3.weight", "blk.4.ffn_up.weight"),
             std::pair("blk.4.ffn_down.weight", "blk.4.ffn_down.weight"),
             std::pair("model.embed_tokens.weight", "token_embd.weight"),
             std::pair("lm_head.weight", "output.weight"),
             std::pair("output.weight", "output.weight"),
             std::pair("model.layers.2.mlp.experts.17.up_proj.weight", "blk.2.ffn_up_exps.weight"),
             std::pair("model.layers.2.block_sparse_moe.experts.7.w2.weight",
                       "blk.2.ffn_down_exps.weight"),
             std::pair("blk.2.ffn_gate_exps.weight", "blk.2.ffn_gate_exps.weight"),
         }) {
        INFO(name);
        CHECK(gguf_name(name) == in_gguf);
    }
}

TEST_CASE("Other names have none in GGUF") {
    for (const char* name :
         {"", ".", "model.layers.q_proj.weight", "model.layers.0.self_attn.q_proj",
          "model.layers.99999999999999999999.self_attn.q_proj.weight",
          "model.layers.#.mlp.up_proj.weight", "model.layers.0.post_attention_layernorm.weight",
          "model.norm.weight", "vision.layers.0.self_attn.q_proj.weight"}) {
        INFO(name);
        CHECK(gguf_name(name).empty());
    }
}
