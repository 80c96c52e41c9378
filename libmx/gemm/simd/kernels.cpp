// SPDX-License-Identifier: Apache-2.0
// The kernel tables of this build's instruction sets.
#include "libmx/gemm/simd/kernels.hpp"

#include <hwy/highway.h>

#define MX_KERNELS(space)                                                                     \
    namespace space {                                                                         \
    int lanes();                                                                              \
    void fused_narrow(const panel_tile&);                                                     \
    void fused_wide(const panel_tile&);                                                       \
    void grouped(const panel_tile&);                                                          \
    void exact_ends(const double*, const double*, std::size_t, const float*, float*, float*); \
    void chain(const float*, const float*, std::size_t, bool, float*);                        \
    constexpr kernels table{lanes, fused_narrow, fused_wide, grouped, exact_ends, chain};     \
    }

namespace mx::gemm::simd {

#include "libmx/base/simd/kernel_tables.inc"

}  // namespace mx::gemm::simd
