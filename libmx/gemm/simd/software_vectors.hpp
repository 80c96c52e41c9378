// SPDX-License-Identifier: Apache-2.0
// Vector engines of the models that are definitions.
#pragma once

#include <memory>

#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/simd/kernels.hpp"

namespace mx::gemm::simd {

/// Whether there are kernels of `t` for this model's algorithm: sums rounded once, and chains where
/// the instruction set has a fused multiply-add.
bool has_software_kernels(target t, const accumulator& m);

/// The engine, for what has kernels: the bits of the plain loop.
std::unique_ptr<engine> make_software_vectors(const kernels& k, const operand& a, const operand& b,
                                              const accumulator& m);

}  // namespace mx::gemm::simd
