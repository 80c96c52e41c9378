// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/layer_dump.hpp"

#include <algorithm>
#include <string_view>

#include "libmx/base/status.hpp"

namespace mx::products {
namespace {

// The last word of a name, and what it stands for.
struct last_word {
    std::string_view word;
    layer_tensor of;
};
constexpr std::array last_words{
    last_word{"x", layer_tensor::x},
    last_word{"input", layer_tensor::x},
    last_word{"inputs", layer_tensor::x},
    last_word{"w", layer_tensor::w},
    last_word{"weight", layer_tensor::w},
    last_word{"kernel", layer_tensor::w},
    last_word{"dy", layer_tensor::dy},
    last_word{"grad_output", layer_tensor::dy},
    last_word{"output_grad", layer_tensor::dy},
};
constexpr std::array<std::string_view, 3> leading_words{"model.", "activations.", "gradients."};

// Adds a tensor to its layer, if its name is one of a layer's tensor.
void add(std::map<std::string, dumped_layer>& layers, const engine::tensor_ref& t) {
    std::string_view name = t.info().name;
    if (name.starts_with("grad.")) return;  // of a weight
    const bool gradient = name.starts_with("gradients.");
    for (const std::string_view lead : leading_words) {
        if (name.starts_with(lead)) name.remove_prefix(lead.size());
    }
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return;
    const std::string_view last = name.substr(dot + 1);
    const auto* const row = std::ranges::find(last_words, last, &last_word::word);
    std::optional<layer_tensor> of;
    if (gradient && last == "output") {
        of = layer_tensor::dy;
    } else if (!gradient && row != last_words.end()) {
        of = row->of;
    }
    if (of) layers[std::string(name.substr(0, dot))][static_cast<std::size_t>(*of)] = t;
}

// The last extent of a tensor, and the product of the others.
std::pair<std::uint64_t, std::uint64_t> extents_of(const engine::tensor_ref& t) {
    const auto& shape = t.info().shape;
    if (shape.size() < 2 || shape.back() == 0) return {0, 0};
    return {shape.back(), t.info().elements / shape.back()};
}

bool is_layer(const dumped_layer& l, bool transposed) {
    if (!l[0] || !l[1] || l[1]->info().shape.size() != 2) return false;
    const auto [in, tokens] = extents_of(*l[0]);
    auto [w_in, w_out] = extents_of(*l[1]);
    if (transposed) std::swap(w_in, w_out);
    if (in == 0 || tokens == 0 || w_out == 0 || in != w_in) return false;
    return !l[2] || extents_of(*l[2]) == std::pair(w_out, tokens);
}

}  // namespace

std::map<std::string, dumped_layer> dumped_layers(const std::vector<engine::tensor_ref>& tensors,
                                                  bool transposed) {
    std::map<std::string, dumped_layer> layers;
    for (const engine::tensor_ref& t : tensors) add(layers, t);
    std::erase_if(layers, [&](const auto& l) { return !is_layer(l.second, transposed); });
    if (layers.empty()) {
        base::refuse(
            "no layer: of each, LAYER.x (or .input, tokens x in) and LAYER.weight (or .w, out x "
            "in) "
            "are required, and LAYER.dy (or .grad_output, tokens x out) is taken; name the tensors "
            "with --x, --w and --dy");
    }
    return layers;
}

}  // namespace mx::products
