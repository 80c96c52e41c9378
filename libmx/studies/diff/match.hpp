// SPDX-License-Identifier: Apache-2.0
// Matches the tensors of several dumps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/reader.hpp"

namespace mx::diff {

/// A tensor of numbers that exists in every dump, with the same shape and at least one element.
struct matched_tensor {
    std::vector<engine::tensor_ref> in;  ///< by dump
    const io::tensor_info& info() const { return in.front().info(); }
};

struct matched_dumps {
    std::vector<matched_tensor> tensors;  ///< in the order of the first dump
    std::vector<engine::skipped_tensor> left_out;
};

/// Matches tensors by name. If every dump has a single tensor, these match whatever their names (an
/// array file is named after itself). Tensors without a reference in `chosen` in any dump are
/// neither matched nor left out.
matched_dumps match_dumps(std::span<const io::reader* const> dumps,
                          std::span<const std::string> paths,
                          const std::vector<engine::tensor_ref>& chosen);

}  // namespace mx::diff
