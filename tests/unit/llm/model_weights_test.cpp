// SPDX-License-Identifier: Apache-2.0
#include "libmx/llm/model_weights.hpp"

#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

using mx::llm::gguf_name;

TEST_CASE("Matrices of three conventions have one name in GGUF") {
    for (const auto& [name, in_gguf] : {
             std::pair("model.layers.10.self_attn.q_proj.weight", "blk.10.attn_q.weight"),
             std::pair("layers.4.feed_forward.w3.weight", "blk.4.ffn_up.weight"),
             std::pair("blk.4.ffn_down.weight", "blk.4.ffn_down.weight"),
             std::pair("model.embed_tokens.weight", "token_embd.weight"),
             std::pair("lm_head.weight", "output.weight"),
             std::pair("language_model.model.layers.3.mlp.up_proj.weight", "blk.3.ffn_up.weight"),
             std::pair("model.language_model.layers.3.mlp.up_proj.weight", "blk.3.ffn_up.weight"),
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

TEST_CASE("The text model of Gemma 3 with images has the defaults of transformers") {
    // As google/gemma-3-4b-it has it.
    mx::io::config_entries entries{{"model_type", "gemma3"},
                                   {"mm_tokens_per_image", "256"},
                                   {"text_config.model_type", "gemma3_text"},
                                   {"text_config.hidden_size", "2560"},
                                   {"text_config.intermediate_size", "10240"},
                                   {"text_config.num_hidden_layers", "34"},
                                   {"text_config.rope_scaling.factor", "8.0"},
                                   {"text_config.rope_scaling.rope_type", "linear"},
                                   {"text_config.sliding_window", "1024"},
                                   {"vision_config.hidden_size", "1152"}};
    const auto shape = [&] {
        return mx::llm::shape_of_config(mx::llm::text_config_of(entries, "config.json"),
                                        mx::llm::naming::hugging_face, "config.json");
    };
    const mx::llm::model_shape s = shape();
    CHECK(s.kind->name == "gemma3_text");
    CHECK(s.width == 2560);
    CHECK(s.heads == 8);
    CHECK(s.key_heads == 4);
    CHECK(s.head_size == 256);
    CHECK(s.vocabulary == 262208);
    CHECK(s.window == 1024);
    CHECK(s.scaling.factor == 8);
    CHECK(s.tied);
    entries["logit_scale"] = "2";
    CHECK_THROWS_AS(shape(), mx::base::error);
}

TEST_CASE("The vision tower is left out, and no other tensor is") {
    const mx::llm::model_weights model(std::string(MX_SOURCE_DIR) +
                                       "/datasets/vectors/eval/gemma3-vision");
    CHECK(model.left_out() == std::vector<std::string>{"multi_modal_projector", "vision_tower"});
    CHECK(model.tensors().size() == 2 + 2 * 13);
    CHECK(model.files().reader().tensors().size() > model.tensors().size());
    CHECK(model.name({mx::llm::role::down, 1}) ==
          "language_model.model.layers.1.mlp.down_proj.weight");
}
