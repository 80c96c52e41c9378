// SPDX-License-Identifier: Apache-2.0
// Which tensors a run leaves out, and why.
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
    /// Of tensors that are no real numbers, or no weights.
    std::string dtype = {};
    tensor::shape shape = {};
    std::uint64_t elements = 0, bytes = 0;  ///< as stored
};

/// Why the tensor is not one of real numbers, or no weight; empty where it is both.
std::string why_left_out(const io::tensor_info& info);

/// Splits off the tensors that are left out; each gets an entry in `skipped`.
std::vector<tensor_ref> numeric_only(const std::vector<tensor_ref>& tensors,
                                     std::vector<skipped_tensor>& skipped);

/// Throws base::error (input), which names what was skipped, unless a run has `any` tensor to look
/// at: a check of nothing must not pass.
void require_any(bool any, const std::vector<skipped_tensor>& skipped);

}  // namespace mx::engine
