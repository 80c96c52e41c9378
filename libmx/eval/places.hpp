// SPDX-License-Identifier: Apache-2.0
// Parts of a model that are quantized alone, or left alone: who pays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/eval/arm.hpp"
#include "libmx/eval/model_weights.hpp"

namespace mx::eval {

enum class level : std::uint8_t {
    layer,   ///< a linear layer; the experts of a block with the same role are one
    block,   ///< all linear layers of a block
    kind,    ///< the linear layers of a role in all blocks
    tensor,  ///< one operand of a linear layer
};

/// Linear layers, and which of their operands.
struct model_part {
    std::string name;
    std::vector<std::string> layers;
    bool inputs = true, weights = true;
};

/// The parts of that level that `how` quantizes, in the order of the forward pass.
std::vector<model_part> parts_of(const model_weights& model, level by, const arm& how);

/// `how` in the parts given, and nothing elsewhere.
arm only(const arm& how, const std::vector<const model_part*>& parts);
/// `how` everywhere but in that part.
arm all_but(const model_weights& model, const arm& how, const model_part& part);

}  // namespace mx::eval
