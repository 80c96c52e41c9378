// SPDX-License-Identifier: Apache-2.0
// --role, --role-pattern, --norm-bias: the choice of tensors by what they are in the model.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"

namespace mx::app {

struct role_options {
    std::vector<std::string> roles;     ///< none: tensors of every role
    std::vector<std::string> patterns;  ///< ROLE=GLOB
    float norm_bias = 0;
};
void declare_roles(parser& cmd, role_options& o);

/// The finder with the user's patterns. Throws base::error (usage).
engine::role_finder finder_of(const role_options& o);

/// Those of `tensors` that have one of the roles asked for. Throws base::error (usage) for an
/// unknown role, and naming the roles when none of them has a tensor.
std::vector<engine::tensor_ref> with_roles(std::vector<engine::tensor_ref> tensors,
                                           const role_options& o,
                                           const engine::role_finder& finder);

}  // namespace mx::app
