// SPDX-License-Identifier: Apache-2.0
// One body for host and device: functions marked MX_HD compile as plain C++ and under nvcc.
#pragma once

#if defined(__CUDACC__)
#define MX_HD __host__ __device__
#else
#define MX_HD
#endif
