// SPDX-License-Identifier: Apache-2.0
// The instruction sets that vector kernels are compiled for.
#pragma once

#include <cstdint>

namespace mx::base::simd {

enum class target : std::uint8_t { sse4, avx2, avx512, neon };

/// Whether this build has the instruction set and this CPU can run it.
bool supported(target t);

}  // namespace mx::base::simd
