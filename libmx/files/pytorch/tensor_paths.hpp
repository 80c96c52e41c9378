// SPDX-License-Identifier: Apache-2.0
// The names of a checkpoint's tensors, from their positions in it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/files/pytorch/pickle_graph.hpp"

namespace mx::io {

/// A value and the keys that lead to it, joined by dots.
struct named_value {
    std::string name;
    pickle_ref value = no_value;
    /// Empty for a tensor; otherwise why an object with tensors cannot be read.
    std::string note;
};

struct checkpoint_values {
    std::vector<named_value> tensors;  ///< in the order of the pickle
    /// Skipped objects without tensors, with their classes: the first 20.
    std::vector<std::pair<std::string, std::string>> passed_over;
    std::size_t passed_over_count = 0;
};

/// Keys under which training scripts store the model next to other data.
inline constexpr std::array<std::string_view, 10> wrapper_keys{
    "model",  "module", "model_state_dict", "state_dict", "model_state",
    "params", "net",    "network",          "weights",    "ema"};

/// Most tensors of one file.
inline constexpr std::size_t named_value_limit = std::size_t{1} << 20;

/// Walks from the root. If all tensors are below one wrapper key of the root, names begin after it:
/// they are those of the model, and of its conversions. A step's name is the key of a dict, the
/// index in a list or tuple, or the attribute of an object; `_parameters`, `_buffers` and
/// `_modules` of an object add no step, so that a whole stored module has the names of its
/// state_dict. A repeated name gets "#2", "#3", ... A file that is one tensor is named `stem`. An
/// object that contains itself is entered once. Throws base::error (input) for repeated keys and
/// for too many values.
checkpoint_values find_tensors(const pickle_graph& graph, const std::string& file,
                               const std::string& stem);

}  // namespace mx::io
