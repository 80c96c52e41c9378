// SPDX-License-Identifier: Apache-2.0
// What is rounded in a training step, and how: the recipes of the six operands of every linear
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

/// How one operand is converted: as in mx layer, or not at all (none, f32, fp32).
struct operand_rule {
    std::optional<products::operand_recipe> recipe;  ///< none: float32 as it is
    friend bool operator==(const operand_rule& a, const operand_rule& b);
};

/// Throws base::error (usage) if `text` names no conversion.
operand_rule parse_rule(const std::string& text);
std::string to_string(const operand_rule& r);

struct layer_precision;

struct precision {
    std::string settings;  ///< that it results from; it is a function of them and the network
    /// By stage, the operands in the order of the product: x and w, dy and w, dy and x.
    std::array<std::array<operand_rule, 2>, 3> operands;
    /// By stage, the rotation of both operands, taken from the recipes that rotate.
    std::array<transform::rotation, 3> rotations;
    /// If set, operands that two products share are quantized the second time from the copy that
    /// the first product used: W and X of Fprop, dY of Dgrad.
    bool requantize = false;
    /// Rounding of operands before quantization and of the results of products, forward and
    /// backward.
    rounding vector_forward = rounding::none, vector_backward = rounding::none;
    /// Rounding of every intermediate result of a norm; forward including those before eps is
    /// added.
    rounding norm_forward = rounding::none, norm_backward = rounding::none;
    rounding norm_statistics = rounding::none;
    bool norm_bias_trains = true;
    operand_rule gain, norm_input, norm_output;  ///< of norms, along the features
    /// Whether the teacher makes labels with this precision, as a forward pass, or in float32.
    bool teacher_quantized = false;
    /// The accumulator model of products; nullopt: one chain of float32 fused multiply-adds.
    std::optional<gemm::accumulator> accumulate;
    std::vector<layer_precision> apart;  ///< layers with a precision of their own

    const precision& of(std::string_view layer) const;
};

/// Whether a recipe rounds stochastically.
bool is_random(const precision& how);

struct layer_precision {
    std::string layer;
    precision own;
};

inline const precision& precision::of(std::string_view layer) const {
    for (const layer_precision& one : apart) {
        if (one.layer == layer) return one.own;
    }
    return *this;
}

/// One setting of a precision: `key` = `value` for the layers whose names match the pattern
/// `layers`, or for all layers if it is "".
struct setting {
    std::string key, value, layers;
    friend bool operator==(const setting&, const setting&) = default;
};

struct precision_key {
    std::string_view name;
    std::string_view also;    ///< another name of it, or ""
    std::string_view values;  ///< as help shows them
    std::string_view summary;
    void (*set)(precision& p, const std::string& value);
};

/// THE LIST of keys: operands ("fprop-x"), tensors, directions, norms, the results of products, and
/// "scheme".
std::span<const precision_key> precision_keys();

/// Applies a setting. Throws base::error (usage); for an unknown key the message contains the
/// nearest one.
void apply(precision& p, const setting& s);

/// Parses settings separated by blanks: "KEY=VALUE", "PATTERN:KEY=VALUE" for some layers, or the
/// name of a scheme. Validates each setting. Throws base::error (usage).
std::vector<setting> parse_settings(std::string_view text);
std::string to_string(const std::vector<setting>& settings);

/// A layer of a network, for patterns. Recipes of operands do not apply to a `kept` layer unless a
/// pattern matches it.
struct layer_name {
    std::string name;
    bool kept = false;
};

/// The precision that results from applying the settings in order, starting with float32
/// everywhere. Throws base::error (usage) for contradictory settings (rotations that do not cancel
/// in a product) and for patterns that match none of `layers`.
precision precision_of(const std::vector<setting>& settings,
                       const std::vector<layer_name>& layers = {});

}  // namespace mx::lab
