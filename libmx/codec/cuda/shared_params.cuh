// SPDX-License-Identifier: Apache-2.0
// What kernels of segments share: the parameters of a recipe in shared memory, where all lanes read
// its numbers at once and each lane looks up its own entry in the table of values; their grids.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "libmx/codec/cuda/lane_group.hpp"

namespace mx::codec::cuda {

/// Lowers a number of blocks of threads to those that a GPU runs at a time, for a list whose length
/// only the GPU knows (launch::marked).
inline int lower_to_resident(unsigned& blocks) {
    int processors = 0;
    const int code = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    blocks = std::min(blocks, 4 * static_cast<unsigned>(processors));
    return code;
}

/// Copies parameters; called by all lanes of a warp.
template <typename Params>
__device__ __forceinline__ void copy_to_shared(const Params& params, Params& shared) {
    static_assert(std::is_trivially_copyable_v<Params>);
    static_assert(sizeof(Params) % sizeof(std::uint32_t) == 0);
    const auto* from = reinterpret_cast<const std::uint32_t*>(&params);
    auto* to = reinterpret_cast<std::uint32_t*>(&shared);
    for (unsigned i = threadIdx.x % lane_count; i < sizeof(Params) / sizeof(std::uint32_t);
         i += lane_count) {
        to[i] = from[i];
    }
    __syncwarp();
}

}  // namespace mx::codec::cuda
