// SPDX-License-Identifier: Apache-2.0
// THE LIST of tensor roles: what a tensor is in its model, as its name tells.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::engine {

/// A role and the names that have it: globs over the lower-case name, separated by spaces, whose
/// separators ('/', ':', '_') read as dots. Rows are tried in order; the first that matches wins.
struct role_row {
    std::string_view name;
    std::string_view meaning;
    std::string_view patterns;
    int least_axes;  ///< of the tensor, not counting axes of length 1
};

std::span<const role_row> roles();

/// A role given by the user: tensors whose name matches `glob` (as --tensor does) have `role`.
struct role_override {
    std::string role;
    std::string glob;
};

/// Finds roles; overrides come first, in their order.
class role_finder {
  public:
    /// Throws base::error (usage) for an unknown role.
    explicit role_finder(std::vector<role_override> overrides = {});
    std::string_view role_of(const io::tensor_info& info) const;

  private:
    std::vector<role_override> overrides_;
};

/// Parses "role=GLOB". Throws base::error (usage).
role_override parse_role_override(const std::string& text);

/// Where a tensor stands among the layers: the first run of digits that is a part of its name of
/// its own, as in "model.layers.12.mlp.up_proj.weight" or "rnn_2/kernel", and what tensors of the
/// same kind in other layers are called.
struct layer_place {
    std::uint64_t layer = 0;
    std::string series;  ///< the name with '*' in the layer's place
};

/// None for names without a number of their own.
std::optional<layer_place> layer_of(std::string_view name);

}  // namespace mx::engine
