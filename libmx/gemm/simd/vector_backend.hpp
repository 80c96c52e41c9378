// SPDX-License-Identifier: Apache-2.0
// The vector backends: whole products by kernels of an instruction set.
#pragma once

#include "libmx/gemm/backend.hpp"
#include "libmx/gemm/simd/kernels.hpp"

namespace mx::gemm::simd {

/// Whether this build has the instruction set and this processor can run it.
bool supported(target t);

/// Whether the kernels compute this model's steps on such operands; all others are the plain
/// loop's.
bool takes(const accumulator& model, const operand& a, const operand& b);

/// The stretch on kernels `k`; the bits of the plain loop.
void advance(const kernels& k, const stretch& s, std::span<std::uint32_t> c);

/// The entry points that the list of backends names.
template <target t>
struct backend_of {
    static bool available() { return supported(t); }
    static void advance(const stretch& s, std::span<std::uint32_t> c) {
        simd::advance(*kernels_for(t), s, c);
    }
};

}  // namespace mx::gemm::simd
