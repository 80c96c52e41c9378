// SPDX-License-Identifier: Apache-2.0
// THE LIST of tensor roles: the function of a tensor in its model, derived from its name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::engine {

/// A role and its names: globs separated by spaces, matched with the lower-case name in which '/',
/// ':' and '_' are replaced by dots and numbers inside the name by 0. A glob after '!' excludes
/// names. Rows are tried in order; the first match wins.
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

/// A tensor's role; not `known` if no row has its name: matrices are then weights, all else is
/// "other".
struct found_role {
    std::string_view name;
    bool known;
};

/// The role that follows from name and shape alone.
found_role role_by_name(std::string_view tensor, std::span<const std::uint64_t> shape);

/// One sentence about tensors whose names have no known role; empty if there are none.
std::string unknown_roles_text(std::size_t tensors, std::string_view example);

/// Finds roles. Overrides take precedence, in their order.
class role_finder {
  public:
    /// Throws base::error (usage) for an unknown role.
    explicit role_finder(std::vector<role_override> overrides = {});
    found_role find(const io::tensor_info& info) const;
    std::string_view role_of(const io::tensor_info& info) const { return find(info).name; }

  private:
    std::vector<role_override> overrides_;
};

/// Parses "role=GLOB". Throws base::error (usage).
role_override parse_role_override(const std::string& text);

/// The layer of a tensor: the first run of digits that is a separate part of its name, as in
/// "model.layers.12.mlp.up_proj.weight" or "rnn_2/kernel", and the common name of such tensors in
/// other layers.
struct layer_place {
    std::uint64_t layer = 0;
    std::string series;  ///< the name with '*' in the layer's place
};

/// nullopt for names without a separate number.
std::optional<layer_place> layer_of(std::string_view name);

}  // namespace mx::engine
