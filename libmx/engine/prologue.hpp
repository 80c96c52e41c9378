// SPDX-License-Identifier: Apache-2.0
// The pass that goes first where a recipe needs a fact about the whole tensor (NVFP4's tensor
// scale). One prologue serves all recipes of a tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/preparation.hpp"
#include "libmx/engine/sweep.hpp"

namespace mx::engine {

/// How many of the tensors from `first` on may share a prologue and the sweep behind it, so that
/// what is kept stays within its bound; at least one, at most `limit`.
std::size_t prologue_share(const std::vector<tensor_ref>& tensors, std::size_t first,
                           std::size_t limit, const run_control& control);

/// Facts that are wanted of a tensor: those of its values after a preparation, which `grid` lays
/// out.
struct facts_wanted {
    preparation how;
    block::grid grid;
};

/// The bits of the largest finite magnitude; 0 without one.
std::uint32_t finite_amax(std::span<const float> x);

/// What a prologue found, by tensor. Empty for a run that needs none.
struct prologue {
    std::vector<std::vector<codec::tensor_facts>> facts;  ///< in the order they were wanted
    std::vector<kept_values> kept;                        ///< by tensor
    std::vector<std::uint64_t> inexact;  ///< of kept tensors: values that widening rounded
};

/// Finds what is wanted of each tensor, and reads the tensors that are kept once. Others are read
/// once per layout in which facts of rotated values are wanted, and once for all others. The facts
/// do not depend on threads: a maximum has no order. Progress is not reported; `control.cancel` is
/// obeyed.
prologue run_prologue(const std::vector<tensor_ref>& tensors,
                      const std::vector<std::vector<facts_wanted>>& wanted,
                      const run_control& control);

}  // namespace mx::engine
