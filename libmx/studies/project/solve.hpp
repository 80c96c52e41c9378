// SPDX-License-Identifier: Apache-2.0
// Finds the parameters of a projection that explain given speed-ups best.
#pragma once

#include <string>
#include <vector>

#include "libmx/studies/project/projection.hpp"

namespace mx::project {

struct solved_parameter {
    std::string name;
    double value = 0;
    double low = 0, high = 0;  ///< over all that the given figures may have been rounded from
};

struct solution {
    assumptions with;
    std::vector<solved_parameter> parameters;
};

/// The values of the parameters `free` that minimize the sum of squares of log(speed-up / target)
/// over the targets that are not checks, starting at `start`. Throws base::error: usage for more
/// parameters than targets; unavailable in a build without NLopt.
solution solve(const model_shape& m, const assumptions& start, const std::vector<std::string>& free,
               const std::vector<target_row>& targets);

}  // namespace mx::project
