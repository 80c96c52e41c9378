// SPDX-License-Identifier: Apache-2.0
// Parts of a model that are quantized alone, or left alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/eval/evaluation.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/llm/model_weights.hpp"

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

/// Writes matrices of the model as it is to a safetensors file, as float32, if their names match:
/// of linear layers the inputs, NAME.x, weights, NAME.weight, and gradients of the outputs, NAME.dy
/// (of models that have them: lab::not_trained); keys and values, NAME.k_cache and NAME.v_cache of
/// the layers that make them; the residual stream NAME.residual that enters a block or the last
/// norm; the input of the head, NAME.x. Rows, but those of weights, are the tokens of all windows.
/// Experts have inputs of their own tokens and are left out. Probabilities of attention, NAME.p of
/// the queries' layer, are large and written only for patterns that end in ".p": of every window
/// and head a row for each token and a column for each position of the longest window.
class activation_file {
  public:
    /// Writes the weights. Throws base::error (usage) if no pattern matches such a matrix.
    activation_file(const std::string& path, const model_weights& model,
                    const std::vector<std::string>& patterns, const std::vector<window>& windows);
    void add(std::string_view layer, std::string_view name, std::size_t rows, std::size_t cols,
             const float* values);
    /// The same of gradients: `rows` rows, and zeros up to `all` rows.
    void add_gradients(std::string_view layer, std::size_t rows, std::size_t all, std::size_t cols,
                       const float* values);
    bool has_gradients() const { return gradients_; }
    bool has_probabilities() const { return probabilities_; }
    void commit() { file_->commit(); }

  private:
    struct place_in_file {
        std::size_t index, cols;
        std::uint64_t written = 0;
    };
    std::map<std::string, place_in_file, std::less<>> arrays_;
    std::unique_ptr<io::array_writer> file_;
    bool gradients_ = false, probabilities_ = false;
};

}  // namespace mx::eval
