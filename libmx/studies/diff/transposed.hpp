// SPDX-License-Identifier: Apache-2.0
// Tensors that two dumps store transposed to each other: kernels as [out, in] and [in, out].
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"

namespace mx::diff {

/// A tensor whose values agree if the last two axes of one dump change places.
struct transposed_tensor {
    std::string name;
    /// On a sample of its elements, as stored and with the axes swapped; none of tensors whose
    /// shapes show it.
    std::optional<double> nrmse, transposed_nrmse;
};

/// Those of the tensors `chosen` of two dumps: of shapes that agree after the swap alone, and
/// square ones whose sample is a quarter as far off after it. Reads some 70 elements of each square
/// tensor. Throws base::error (input).
std::vector<transposed_tensor> find_transposed(std::span<const io::reader* const> dumps,
                                               const std::vector<engine::tensor_ref>& chosen);

/// Globs that match all of these and no other tensor of `dump`: one for the layers of a model where
/// that is so.
std::vector<std::string> globs_of(const std::vector<transposed_tensor>& tensors,
                                  const io::reader& dump);

}  // namespace mx::diff
