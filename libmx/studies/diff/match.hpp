// SPDX-License-Identifier: Apache-2.0
// Which tensors of several dumps are one and the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/reader.hpp"

namespace mx::diff {

/// A tensor of numbers that every dump has, with one shape and at least one element.
struct matched_tensor {
    std::vector<engine::tensor_ref> in;  ///< by dump
    const io::tensor_info& info() const { return in.front().info(); }
};

struct matched_dumps {
    std::vector<matched_tensor> tensors;  ///< in the order of the first dump
    std::vector<engine::skipped_tensor> left_out;
};

/// Matches tensors by name; when every dump holds a single tensor, these are matched whatever they
/// are called (an array file is named after itself). Tensors of which no dump has a reference in
/// `chosen` are neither matched nor left out.
matched_dumps match_dumps(std::span<const io::reader* const> dumps,
                          std::span<const std::string> paths,
                          const std::vector<engine::tensor_ref>& chosen);

}  // namespace mx::diff
