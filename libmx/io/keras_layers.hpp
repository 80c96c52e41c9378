// SPDX-License-Identifier: Apache-2.0
// The axes that Keras layers sum over, from the classes of layers and the names of their variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::io {

/// Whether the names of tensors are those of a Keras file: layers/dense/vars/0, dense/kernel:0.
bool looks_like_keras_names(const std::vector<tensor_info>& tensors);

/// States what the layers of `tensors` sum over. `config`: the model's configuration as JSON
/// (`model_config`, config.json), which has the classes of layers by name; empty or not readable:
/// the classes are those that the names of groups spell.
void state_keras_contractions(std::vector<tensor_info>& tensors, std::string_view config);

}  // namespace mx::io
