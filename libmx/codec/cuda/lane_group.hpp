// SPDX-License-Identifier: Apache-2.0
// Thirty-two lanes in lockstep. On a GPU they are the threads of a warp and exchange values by
// shuffles; on the host they are a loop, so that tests run the same code as the kernels.
//
// Code is a sequence of steps: each() executes one for every lane, with exchanges in between.
// Values that a lane keeps from step to step are in a per_lane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "libmx/base/macros.hpp"

// Before a loop of rare code: it is not unrolled.
#if defined(__CUDA_ARCH__)
#define MX_ROLLED _Pragma("unroll 1")
#else
#define MX_ROLLED
#endif

namespace mx::codec::cuda {

inline constexpr int lane_count = 32;

#if defined(__CUDA_ARCH__)

/// A variable with a value per lane; a lane accesses its own value only.
template <typename T>
struct per_lane {
    T own;
    __device__ T& operator[](int) { return own; }
    __device__ const T& operator[](int) const { return own; }
};

/// Executes `step(lane)` for every lane.
template <typename Step>
__device__ __forceinline__ void each(Step&& step) {
    step(static_cast<int>(threadIdx.x % lane_count));
}

/// v = combine(v, v of lane ^ mask) in every lane.
template <typename T, typename Combine>
__device__ __forceinline__ void exchange(per_lane<T>& v, int mask, Combine&& combine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint32_t) == 0);
    std::uint32_t word[sizeof(T) / sizeof(std::uint32_t)];
    std::memcpy(word, &v.own, sizeof(T));
    for (std::uint32_t& w : word) w = __shfl_xor_sync(0xffffffffu, w, mask);
    T other;
    std::memcpy(&other, word, sizeof(T));
    v.own = combine(v.own, other);
}

/// Whether v is true in any lane; the same result in all.
__device__ __forceinline__ bool any(const per_lane<bool>& v) {
    return __any_sync(0xffffffffu, v.own ? 1 : 0) != 0;
}

/// A bit for every lane; the same word in all.
__device__ __forceinline__ std::uint32_t ballot(const per_lane<bool>& v) {
    return __ballot_sync(0xffffffffu, v.own ? 1 : 0);
}

/// The largest number of all lanes, in each of them.
__device__ __forceinline__ int largest(const per_lane<int>& v) {
    return __reduce_max_sync(0xffffffffu, v.own);
}

#else

template <typename T>
struct per_lane {
    T all[lane_count];
    MX_HD T& operator[](int lane) { return all[lane]; }
    MX_HD const T& operator[](int lane) const { return all[lane]; }
};

template <typename Step>
MX_HD inline void each(Step&& step) {
    for (int lane = 0; lane < lane_count; ++lane) step(lane);
}

template <typename T, typename Combine>
MX_HD inline void exchange(per_lane<T>& v, int mask, Combine&& combine) {
    const per_lane<T> before = v;
    for (int lane = 0; lane < lane_count; ++lane) {
        v[lane] = combine(before[lane], before[lane ^ mask]);
    }
}

MX_HD inline bool any(const per_lane<bool>& v) {
    for (int lane = 0; lane < lane_count; ++lane) {
        if (v[lane]) return true;
    }
    return false;
}

MX_HD inline std::uint32_t ballot(const per_lane<bool>& v) {
    std::uint32_t bits = 0;
    for (int lane = 0; lane < lane_count; ++lane) bits |= (v[lane] ? 1u : 0u) << lane;
    return bits;
}

MX_HD inline int largest(const per_lane<int>& v) {
    return *std::max_element(v.all, v.all + lane_count);
}

#endif

/// The same for one member of the values of all lanes.
template <typename T, typename Member, typename Combine>
MX_HD inline void exchange(per_lane<T>& v, Member T::*member, int mask, Combine&& combine) {
    per_lane<Member> m;
    each([&](int lane) { m[lane] = v[lane].*member; });
    exchange(m, mask, combine);
    each([&](int lane) { v[lane].*member = m[lane]; });
}

}  // namespace mx::codec::cuda
