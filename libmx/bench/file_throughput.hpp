// SPDX-License-Identifier: Apache-2.0
// How fast `analyze` goes through files that the system holds in memory.
#pragma once

#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"

namespace mx::bench {

struct file_rate {
    double elements_per_second;  ///< of the tensors that the recipe suits; best of all passes
    double bytes_per_element;    ///< of them, as they are stored
};

/// analyze() under one recipe, five times or more and for `seconds` (a pass before them brings the
/// files into memory). Throws base::error: usage when the recipe suits no tensor; else that of
/// analyze().
file_rate measure_files(const std::vector<engine::tensor_ref>& tensors, const codec::recipe& recipe,
                        double seconds, const engine::run_control& control);

}  // namespace mx::bench
