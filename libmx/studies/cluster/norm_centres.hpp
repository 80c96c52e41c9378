// SPDX-License-Identifier: Apache-2.0
// Whether the norms of a model are stored as gamma - 1: their values then lie around 0, where those
// of other models lie around 1.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"

namespace mx::cluster {

struct norm_centres {
    std::size_t norms = 0;                 ///< tensors whose role is norm, with values
    std::vector<std::string> around_zero;  ///< names of those that look like gamma - 1

    /// Most norms do: a single shift that was taken for a norm proves nothing.
    bool look_like_gamma_minus_one() const { return 2 * around_zero.size() > norms; }
};

/// Looks at the values as stored. A norm lies around zero when more than half of its values are
/// below 1/2 in magnitude and at least a tenth are negative (or all are zero, as before training):
/// a gain is hardly ever negative. Throws base::error.
norm_centres find_norm_centres(const std::vector<engine::tensor_ref>& tensors,
                               const engine::role_finder& roles,
                               const engine::run_control& control);

}  // namespace mx::cluster
