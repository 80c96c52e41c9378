// SPDX-License-Identifier: Apache-2.0
// Arrays of any shape that are on a device, under recipes: the bytes of the host, without copies.
#pragma once

#include <cstdint>
#include <string>

#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/cuda/array_quantizer.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::engine::cuda {

using codec::cuda::array_quantizer;
using codec::cuda::device_numbers;
using codec::cuda::packed_array;

/// An array on a device, in C order without gaps.
struct array {
    device_numbers values;
    tensor::shape extents;
    std::uint64_t tensor_id = 0;  ///< of random draws: base::tensor_id(name)
};

/// What the device has no kernels for in `r`, or in such an array under it; empty if there is
/// nothing. `packed`: codes and scales are wanted, not values.
std::string obstacle(const codec::recipe& r, const tensor::shape& extents, bool packed);

// Work is queued, and memory that it needs is freed when it goes out of scope: the memory of `by`
// must be freed in the order of its stream. The results of all throw as those of the host
// (mx/mx.hpp) do, and there must be no obstacle. Recipes with a scale of the tensor wait for its
// maximum.

/// `to` has as many elements and may be x.values.
void fake_quantize(array_quantizer& by, const array& x, const codec::recipe& r, device_numbers to);

/// Returns the scale of the tensor; ones for recipes without.
codec::tensor_scale quantize(array_quantizer& by, const array& x, const codec::recipe& r,
                             const packed_array& to);

/// `tensor_scale` as stored, for recipes that have one.
void dequantize(array_quantizer& by, const codec::recipe& r, const tensor::shape& extents,
                const packed_array& from, float tensor_scale, device_numbers to);

/// What metrics are computed from, of the whole array, and the scale of the tensor. Waits.
struct measured {
    block::segment_stats stats{};
    codec::tensor_scale tensor;
};
measured measure(array_quantizer& by, const array& x, const codec::recipe& r);

}  // namespace mx::engine::cuda
