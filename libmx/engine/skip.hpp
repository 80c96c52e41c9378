// SPDX-License-Identifier: Apache-2.0
// The tensors that a run leaves out, with reasons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"

namespace mx::engine {

/// A tensor that was left out, and why (BOOL, complex, an axis the tensor does not have, ...).
struct skipped_tensor {
    std::string file;
    std::string tensor;
    std::string recipe;  ///< empty when skipped under every recipe
    std::string reason;
    /// For tensors that are not numeric, or not weights.
    std::string dtype = {};
    tensor::shape shape = {};
    std::uint64_t elements = 0, bytes = 0;  ///< as stored
    std::string tied_to = {};               ///< io::tensor_info::tied_to
};

/// Why the tensor is not numeric, or not a weight; empty otherwise.
std::string why_left_out(const io::tensor_info& info);

/// Removes the tensors that are left out; adds an entry to `skipped` for each.
std::vector<tensor_ref> numeric_only(const std::vector<tensor_ref>& tensors,
                                     std::vector<skipped_tensor>& skipped);

/// Throws base::error (input) with the skipped tensors unless a run has `any` tensor: a check of
/// nothing must not succeed.
void require_any(bool any, const std::vector<skipped_tensor>& skipped);

}  // namespace mx::engine
