// SPDX-License-Identifier: Apache-2.0
// What is quantized in an evaluation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/lab/precision.hpp"
#include "libmx/llm/model_weights.hpp"

namespace mx::eval {

using llm::model_shape, llm::model_weights, llm::place, llm::role;

/// One way to run the model.
struct arm {
    std::string name;                    ///< as the user wrote it
    std::vector<lab::setting> settings;  ///< of linear layers, by the grammar of `mx train --at`
    lab::operand_rule kv;         ///< of keys (turned) and values as a cache stores them: blocks
                                  ///< run along the features of a head
    lab::operand_rule attention;  ///< of the operands of both products of attention: q, k and the
                                  ///< probabilities along their rows, v along the tokens
    lab::precision how;           ///< what `settings` mean for the layers of the model
};

/// `settings` of an arm by its spelling: a recipe for weights and activations ("mxfp8"), or
/// settings separated by blanks ("weights=mxfp4 activations=mxfp8 '*.down_proj:x=bf16'"). Throws
/// base::error (usage).
std::vector<lab::setting> settings_of_recipe(const std::string& text);

}  // namespace mx::eval
