// SPDX-License-Identifier: Apache-2.0
// What `mx quantize` quantizes of a model, and checkpoints of tensors in memory. Throws
// base::error.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::documents {

/// What mx analyze calls operands, under the recipe (none: one without blocks); the rest is copied,
/// and so is what is quantized already, unless it is `anew`. Usage if nothing is an operand.
std::vector<convert::assigned_tensor> operands_in(const std::vector<engine::tensor_ref>& all,
                                                  const std::optional<codec::recipe>& recipe,
                                                  bool anew = false);

struct checkpoint_options {
    std::string folder;  ///< new, or empty; of gguf a file
    std::string layout, recipe;
    std::string config;        ///< the folder of config.json, whose other files are copied
    std::string input_scales;  ///< "" or a file, as of convert::write_engine_layout
};

/// Writes what `mx quantize --layout` writes of a file in `config` that has these tensors in this
/// order. Throws base::error: usage for an unknown layout, and as convert::write_engine_layout.
convert::conversion save_checkpoint(
    const checkpoint_options& o,
    std::vector<std::pair<std::shared_ptr<const io::reader>, std::size_t>> tensors,
    const engine::run_control& control);

}  // namespace mx::documents
