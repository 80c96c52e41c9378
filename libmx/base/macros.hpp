// SPDX-License-Identifier: Apache-2.0
// One body for host and device: functions marked MX_HD compile as plain C++ and under nvcc.
#pragma once

#if defined(__CUDACC__)
#define MX_HD __host__ __device__
#else
#define MX_HD
#endif
// The same for a long function with several callers: one copy on a device. For the host the
// attribute would contradict `inline`.
#if defined(__CUDA_ARCH__)
#define MX_HD_CALL MX_HD __noinline__
#else
#define MX_HD_CALL MX_HD
#endif
