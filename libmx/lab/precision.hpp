// SPDX-License-Identifier: Apache-2.0
// What is rounded in a step of a training, and how: the recipes of the six operands of every linear
// layer, the layer norms, and the results of products.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/lab/simd/kernels.hpp"
#include "libmx/studies/products/operand_recipe.hpp"

namespace mx::lab {

using simd::rounding;

/// The products of a linear layer: Y = X W^T, dX = dY W, dW = dY^T X.
enum class stage : std::uint8_t { fprop, dgrad, wgrad };

/// What becomes of one operand: as in mx stages, or nothing (none, f32, fp32).
struct operand_rule {
    std::optional<products::operand_recipe> recipe;  ///< none: float32 as it is
    friend bool operator==(const operand_rule& a, const operand_rule& b);
};

/// Throws base::error (usage).
operand_rule parse_rule(const std::string& text);
std::string to_string(const operand_rule& r);

struct precision {
    /// By stage; of each the operands in the order of its product: x and w, dy and w, dy and x.
    std::array<std::array<operand_rule, 2>, 3> operands;
    /// Of each stage, for both of its operands: that of the recipes that rotate.
    std::array<transform::rotation, 3> rotations;
    /// Operands that two products share are quantized a second time from the copy that the first
    /// one quantized: W and X of Fprop, dY of Dgrad.
    bool requantize = false;
    /// Of operands before they are quantized and of what products give, forward and backward.
    rounding vector_forward = rounding::none, vector_backward = rounding::none;
    /// Of every intermediate result of a norm, and (forward) of those before eps is added.
    rounding norm_forward = rounding::none, norm_backward = rounding::none;
    rounding norm_statistics = rounding::none;
    bool norm_bias_trains = true;
    operand_rule gain, norm_input, norm_output;  ///< of norms, along the features
    /// How products add up; none: one chain of float32 fused multiply-adds.
    std::optional<gemm::accumulator> accumulate;
    /// Layers by name that have a precision of their own.
    std::vector<std::pair<std::string, precision>> apart;

    const precision& of(std::string_view layer) const {
        for (const auto& [name, own] : apart) {
            if (name == layer) return own;
        }
        return *this;
    }
};

/// One thing that can be said about a precision: `key` = `value`, of the layers whose name matches
/// the pattern `layers`; "": of all.
struct setting {
    std::string key, value, layers;
    friend bool operator==(const setting&, const setting&) = default;
};

struct precision_key {
    std::string_view name;
    std::string_view also;  ///< another name of it, or ""
    std::string_view values;
    std::string_view summary;
    void (*set)(precision& p, const std::string& value);
};

/// THE LIST of keys: operands ("fprop-x"), tensors, directions, norms, the results of products, and
/// "scheme".
std::span<const precision_key> precision_keys();

/// Applies a setting. Throws base::error (usage), naming the nearest key.
void apply(precision& p, const setting& s);

/// Parses settings separated by blanks: "KEY=VALUE", "PATTERN:KEY=VALUE" of some layers, or the
/// name of a scheme. Each is tried. Throws base::error (usage).
std::vector<setting> parse_settings(std::string_view text);
std::string to_string(const std::vector<setting>& settings);

/// A layer of a network, for patterns. Recipes of operands leave one alone that is `kept` unless a
/// pattern names it.
struct layer_name {
    std::string name;
    bool kept = false;
};

/// What the settings come to, in their order, beginning with float32 throughout. Throws base::error
/// (usage) where they contradict each other (rotations that do not cancel in a product), or where a
/// pattern matches none of `layers`.
precision precision_of(const std::vector<setting>& settings,
                       const std::vector<layer_name>& layers = {});

}  // namespace mx::lab
