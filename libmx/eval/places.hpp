// SPDX-License-Identifier: Apache-2.0
// Parts of a model that are quantized alone, or left alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/eval/arm.hpp"
#include "libmx/eval/model_weights.hpp"
#include "libmx/io/writer.hpp"

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
arm all_but(const arm& how, const model_part& part);

/// Writes activations of the model as it is to a safetensors file, as float32: the inputs of the
/// linear layers whose names match, as NAME.x, and keys and values, as NAME.k_cache and
/// NAME.v_cache of the layers that make them. Rows are the tokens of all windows. Experts have
/// inputs of their own tokens and are left out.
class activation_file {
  public:
    /// Throws base::error (usage) for a pattern that matches no such matrix.
    activation_file(const std::string& path, const model_weights& model,
                    const std::vector<std::string>& patterns, std::size_t rows);
    void add(std::string_view layer, std::string_view name, std::size_t rows, std::size_t cols,
             const float* values);
    void commit() { file_->commit(); }

  private:
    struct place_in_file {
        std::size_t index;
        std::uint64_t written = 0;
    };
    std::map<std::string, place_in_file, std::less<>> arrays_;
    std::unique_ptr<io::array_writer> file_;
};

}  // namespace mx::eval
