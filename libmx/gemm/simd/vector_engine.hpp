// SPDX-License-Identifier: Apache-2.0
// The vector engines: tiles of a product by kernels of an instruction set.
#pragma once

#include <memory>

#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/simd/kernels.hpp"

namespace mx::gemm::simd {

/// Whether this build has the instruction set and this processor can run it.
bool supported(target t);

/// Whether the kernels compute this model's steps on such operands; all others are the plain
/// loop's.
bool computes(const accumulator& m, const operand& a, const operand& b);

/// An engine on kernels `k`, for what it computes: the bits of the plain loop. The operands have to
/// outlive it; they are packed on so many threads (base::thread_count).
std::unique_ptr<engine> make_vector_engine(const kernels& k, const operand& a, const operand& b,
                                           const accumulator& m, int threads);

}  // namespace mx::gemm::simd
