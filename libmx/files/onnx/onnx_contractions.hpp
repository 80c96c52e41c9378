// SPDX-License-Identifier: Apache-2.0
// The axes of an ONNX file's tensors that the products of its graph sum over. For onnx*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "libmx/files/onnx/onnx_model.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// By tensor of `model`: the axes, followed through transposes, reshapes, casts and dequantization;
/// `first` is negative (only_looked_up, in_no_product) if nodes read the tensor and no product
/// does; unknown, with the reason, if products disagree or an axis cannot be followed. `numbers`
/// returns the values of a small int64 tensor, or none.
std::vector<contraction> onnx_contractions(
    const onnx_model& model, const std::function<std::vector<std::int64_t>(std::size_t)>& numbers);

}  // namespace mx::io
