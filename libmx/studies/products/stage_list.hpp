// SPDX-License-Identifier: Apache-2.0
// THE LIST of the products of a linear layer in training.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libmx/studies/products/matrix.hpp"

namespace mx::products {

/// The tensors of a layer Y = X W^T: X tokens x in, W out x in, dY tokens x out.
enum class layer_tensor : std::uint8_t { x, w, dy };
inline constexpr std::array<std::string_view, 3> layer_tensor_names{"x", "w", "dy"};

/// An operand: its tensor and the summed axis.
struct stage_operand {
    layer_tensor tensor;
    products::reduction over;
};

struct stage_row {
    std::string_view name;
    std::string_view title;    ///< "Fprop"
    std::string_view product;  ///< "Y = X W^T"
    std::string_view result;   ///< "Y"
    std::string_view sum;      ///< what is summed over
    bool gradient;             ///< the result is a gradient: zeta is about these
    std::array<stage_operand, 2> operands;
};

inline constexpr std::array stage_rows{
    stage_row{"fprop",
              "Fprop",
              "Y = X W^T",
              "Y",
              "inputs",
              false,
              {{{layer_tensor::x, products::reduction::last},
                {layer_tensor::w, products::reduction::last}}}},
    stage_row{"dgrad",
              "Dgrad",
              "dX = dY W",
              "dX",
              "outputs",
              true,
              {{{layer_tensor::dy, products::reduction::last},
                {layer_tensor::w, products::reduction::first}}}},
    stage_row{"wgrad",
              "Wgrad",
              "dW = dY^T X",
              "dW",
              "tokens",
              true,
              {{{layer_tensor::dy, products::reduction::first},
                {layer_tensor::x, products::reduction::first}}}},
};

/// The stage and position at which a tensor is quantized along its last axis, which makes the copy
/// that is quantized again.
constexpr std::array<std::size_t, 2> first_use(layer_tensor t) {
    for (std::size_t s = 0; s < stage_rows.size(); ++s) {
        for (std::size_t i = 0; i < 2; ++i) {
            const stage_operand& o = stage_rows[s].operands[i];
            if (o.tensor == t && o.over == products::reduction::last) return {s, i};
        }
    }
    return {0, 0};
}

}  // namespace mx::products
