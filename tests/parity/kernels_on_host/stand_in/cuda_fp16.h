// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/base/half.hpp"

struct __half2 {
    std::uint16_t x, y;
};
inline float2 __half22float2(__half2 pair) {
    return {mx::base::float_from_half(pair.x), mx::base::float_from_half(pair.y)};
}
