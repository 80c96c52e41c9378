// SPDX-License-Identifier: Apache-2.0
// Reads one value in a type that backends read directly, for host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "libmx/base/half.hpp"
#include "libmx/base/macros.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::codec {

/// Element `at` of `data`, which contains aligned f32, bf16 or f16 values. Widening is exact.
MX_HD inline float stored_value(tensor::dtype type, const std::byte* data, std::uint64_t at) {
    if (type == tensor::dtype::f32) {
        float x;
        std::memcpy(&x, __builtin_assume_aligned(data + at * sizeof x, sizeof x), sizeof x);
        return x;
    }
    std::uint16_t h;
    std::memcpy(&h, __builtin_assume_aligned(data + at * sizeof h, sizeof h), sizeof h);
    return type == tensor::dtype::bf16 ? base::float_from_bf16(h) : base::float_from_half(h);
}

}  // namespace mx::codec
