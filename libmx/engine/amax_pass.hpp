// SPDX-License-Identifier: Apache-2.0
// The first pass over tensors whose recipe needs a fact about the whole tensor (NVFP4's tensor
// scale). One pass serves all recipes of a tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/input_transform.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/sweep.hpp"

namespace mx::engine {

/// The number of tensors from `first` on that may share an amax pass and the following sweep
/// without exceeding the memory bound; at least one, at most `limit`.
std::size_t tensors_of_amax_pass(const std::vector<tensor_ref>& tensors, std::size_t first,
                                 std::size_t limit, const run_control& control);

/// A requested fact of a tensor: of its values after an input transform, in the layout of `grid`.
struct fact_request {
    input_transform how;
    block::grid grid;
};

/// The bits of the largest finite magnitude; 0 if there is none.
std::uint32_t finite_amax(std::span<const float> x);

/// The results of the pass, by tensor. Empty for a run that needs none.
struct amax_pass {
    std::vector<std::vector<codec::tensor_facts>> facts;  ///< in the order of the requests
    std::vector<kept_values> kept;                        ///< by tensor
    std::vector<std::uint64_t> inexact;  ///< of kept tensors: values that widening rounded
};

/// Finds the requested facts of each tensor. Tensors that are kept are read once; others once per
/// layout of rotated values, and once for all other facts. The facts do not depend on threads,
/// because a maximum is independent of order. Does not report progress; honours `control.cancel`.
amax_pass run_amax_pass(const std::vector<tensor_ref>& tensors,
                        const std::vector<std::vector<fact_request>>& requests,
                        const run_control& control);

}  // namespace mx::engine
