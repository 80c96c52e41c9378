// SPDX-License-Identifier: Apache-2.0
// Statistics are modelled on what published checkpoints show: weights with a kurtosis of 3.5 to 4,
// query and key weights up to 8, standard deviations falling with width and changing with depth, a
// few large channels that are the same in every layer, layer-norm gains that sit close together.
#include "datasets/generators/transformer.hpp"

#include <cmath>
#include <iterator>
#include <string>
#include <utility>

namespace mx::synth {
namespace {

constexpr std::uint64_t longest_mask = 128;

/// Clusters just under 1, 2, 1/2 and 1/4: all gains lie in 0.9705 to 0.9955 of the power of two,
/// above the 0.90625 beyond which every E4M3, E5M2 or E3M2 code under a floor scale is clamped, and
/// stay below the power of two when rounded to bfloat16.
constexpr double cluster_centre = 0.983;
constexpr double cluster_half_width = 0.0125;
constexpr double cluster_tops[] = {1.0, 2.0, 0.5, 0.25};

class builder {
  public:
    builder(const architecture& shape, tensor::dtype type) : a_(shape), type_(type) {}

    std::vector<tensor_spec> build() {
        embedding();
        for (std::uint64_t layer = 0; layer < a_.layers; ++layer) {
            attention(layer);
            mlp(layer);
            norms(layer);
            activations(layer);
        }
        if (a_.gradients) {
            gradients(0);
            if (a_.layers > 1) gradients(a_.layers - 1);
        }
        tail();
        return std::move(tensors_);
    }

  private:
    static std::string layer_name(const char* root, std::uint64_t layer) {
        return std::string(root) + ".layers." + std::to_string(layer) + ".";
    }

    tensor_spec& add(std::string name, tensor::shape shape, law draw, double scale) {
        tensor_spec spec;
        spec.name = std::move(name);
        spec.type = type_;
        spec.shape = std::move(shape);
        spec.draw = draw;
        spec.scale = scale;
        tensors_.push_back(std::move(spec));
        return tensors_.back();
    }

    /// A weight matrix of `rows` outputs and `columns` inputs; inputs of the residual stream share
    /// their large columns.
    tensor_spec& weight(std::string name, tensor::shape shape, law draw, double gain) {
        const auto columns = static_cast<double>(shape.back());
        const bool residual = shape.back() == a_.hidden;
        tensor_spec& spec = add(std::move(name), std::move(shape), draw, gain / std::sqrt(columns));
        spec.row_spread = 0.1;
        if (residual) spec.outliers = {"residual", 0.01, 3.0};
        return spec;
    }

    /// 0 for the first layer, 1 for the last.
    double depth(std::uint64_t layer) const {
        if (a_.layers < 2) return 0.0;
        return static_cast<double>(layer) / static_cast<double>(a_.layers - 1);
    }

    void embedding() {
        if (a_.vocab == 0) return;
        tensor_spec& spec =
            add("model.embed_tokens.weight", {a_.vocab, a_.hidden}, law::student_t14, 0.03);
        spec.row_spread = 0.25;
        spec.zero_rows = 1;
        spec.outliers = {"residual", 0.01, 3.0};
    }

    void attention(std::uint64_t layer) {
        const std::string name = layer_name("model", layer) + "self_attn.";
        const std::uint64_t kv = a_.hidden / a_.heads * a_.kv_heads;
        const double d = depth(layer);
        weight(name + "q_proj.weight", {a_.hidden, a_.hidden}, law::student_t6, 1.3 - 0.5 * d);
        weight(name + "k_proj.weight", {kv, a_.hidden}, law::student_t6, 1.2 - 0.5 * d);
        weight(name + "v_proj.weight", {kv, a_.hidden}, law::student_t14, 0.4 + 0.4 * d);
        weight(name + "o_proj.weight", {a_.hidden, a_.hidden}, law::student_t14, 0.5 + 0.4 * d);
        add(name + "q_proj.bias", {a_.hidden}, law::student_t6, 0.05);
        add(name + "k_proj.bias", {kv}, law::student_t4, 2.0 - d);
        add(name + "v_proj.bias", {kv}, law::normal, 0.015);
    }

    void mlp(std::uint64_t layer) {
        const std::string name = layer_name("model", layer) + "mlp.";
        const double d = depth(layer);
        if (a_.experts != 0 && layer == 1) {
            weight(name + "gate.weight", {a_.experts, a_.hidden}, law::normal, 0.5);
            weight(name + "experts.gate_up_proj", {a_.experts, a_.ffn, a_.hidden}, law::student_t14,
                   0.9);
            weight(name + "experts.down_proj", {a_.experts, a_.hidden, a_.ffn / 2},
                   law::student_t14, 0.8);
            return;
        }
        weight(name + "gate_proj.weight", {a_.ffn, a_.hidden}, law::student_t14, 1.0 - 0.2 * d);
        weight(name + "up_proj.weight", {a_.ffn, a_.hidden}, law::student_t14, 0.9 - 0.1 * d);
        weight(name + "down_proj.weight", {a_.hidden, a_.ffn}, law::student_t14, 0.8 + 0.1 * d);
    }

    void gain(const std::string& name, std::uint64_t which) {
        const std::uint64_t period = a_.norm_gains == gains::clustered ? 4 : 3;
        const std::uint64_t kind = which % period;
        if (kind == period - 1) {  // spread
            add(name, {a_.hidden}, law::student_t6, 0.15).centre = 0.8;
        } else if (kind == 1 && period == 3) {
            add(name, {a_.hidden}, law::normal, 0.06).centre = 1.0;
        } else {
            const double top = cluster_tops[which / period % std::size(cluster_tops)];
            add(name, {a_.hidden}, law::uniform, cluster_half_width * top).centre =
                cluster_centre * top;
        }
    }

    void norms(std::uint64_t layer) {
        const std::string name = layer_name("model", layer);
        gain(name + "input_layernorm.weight", 2 * layer);
        if (a_.norm_biases) add(name + "input_layernorm.bias", {a_.hidden}, law::student_t6, 0.02);
        gain(name + "post_attention_layernorm.weight", 2 * layer + 1);
        if (a_.norm_biases) {
            add(name + "post_attention_layernorm.bias", {a_.hidden}, law::student_t6, 0.03);
        }
    }

    void activations(std::uint64_t layer) {
        const std::string name = layer_name("activations", layer);
        const double d = depth(layer);
        tensor_spec& attention_in =
            add(name + "self_attn.input", {a_.tokens, a_.hidden}, law::student_t6, 0.8 + 0.4 * d);
        attention_in.row_spread = 0.15;
        attention_in.outliers = {"residual", 0.01, 20.0};
        tensor_spec& mlp_in =
            add(name + "mlp.input", {a_.tokens, a_.hidden}, law::student_t4, 0.6 + 0.6 * d);
        mlp_in.row_spread = 0.15;
        mlp_in.outliers = {"residual", 0.01, 40.0};
        tensor_spec& product =
            add(name + "mlp.down_proj.input", {a_.tokens, a_.ffn}, law::student_t4, 0.2 + 0.5 * d);
        product.row_spread = 0.5;
        product.outliers = {name + "mlp", 0.005, 25.0};
    }

    void gradients(std::uint64_t layer) {
        const std::string name = layer_name("gradients", layer);
        const double scale = 1e-5 * (1.0 - 0.6 * depth(layer));
        const auto gradient = [&](const char* of, tensor::shape shape, double factor) {
            tensor_spec& spec = add(name + of, std::move(shape), law::log_normal2, factor * scale);
            spec.row_spread = 0.3;
        };
        gradient("self_attn.q_proj.weight", {a_.hidden, a_.hidden}, 0.3);
        gradient("self_attn.o_proj.weight", {a_.hidden, a_.hidden}, 1.0);
        gradient("mlp.down_proj.weight", {a_.hidden, a_.ffn}, 0.7);
        gradient("input_layernorm.weight", {a_.hidden}, 20.0);
    }

    void tail() {
        tensor_spec& last = add("model.norm.weight", {a_.hidden}, law::student_t6, 0.4);
        last.centre = 1.8;
        tensor_spec& scalar = add("model.logit_scale", {}, law::uniform, 0.5);
        scalar.centre = 4.0;
        scalar.type = tensor::dtype::f32;
        tensor_spec& frequencies =
            add("model.rotary_emb.inv_freq", {a_.hidden / a_.heads / 2}, law::uniform, 1.0);
        frequencies.kind = content::frequencies;
        frequencies.type = tensor::dtype::f32;
        const std::uint64_t length = a_.tokens < longest_mask ? a_.tokens : longest_mask;
        tensor_spec& mask = add("model.causal_mask", {1, 1, length, length}, law::uniform, 1.0);
        mask.kind = content::causal_mask;
        mask.type = tensor::dtype::boolean;
        tensor_spec& positions = add("model.position_ids", {1, a_.tokens}, law::uniform, 1.0);
        positions.kind = content::positions;
        positions.type = tensor::dtype::i64;
    }

    architecture a_;
    tensor::dtype type_;
    std::vector<tensor_spec> tensors_;
};

}  // namespace

std::vector<tensor_spec> transformer_tensors(const architecture& shape, tensor::dtype type) {
    return builder(shape, type).build();
}

}  // namespace mx::synth
