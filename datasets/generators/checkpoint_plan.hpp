// SPDX-License-Identifier: Apache-2.0
// From a preset to the list of its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "datasets/generators/presets.hpp"
#include "datasets/generators/tensor_spec.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::synth {

struct plan_options {
    tensor::dtype type = tensor::dtype::bf16;  ///< of weights, activations, gradients
    std::optional<std::uint64_t> size;  ///< target bytes, scalable presets only; none: 64 MiB
};

/// The smallest and the largest size that a scalable preset takes.
inline constexpr std::uint64_t smallest_size = std::uint64_t{1} << 20;
inline constexpr std::uint64_t largest_size = std::uint64_t{1} << 44;

/// The tensors of `preset`, in file order. With a size, the tensors' bytes come to between 98 %
/// and 100 % of it. Throws base::error (usage) when the type is none of BF16, F16, F32, when a
/// size is given to a preset that has its own, or when it is out of range.
std::vector<tensor_spec> plan_checkpoint(const preset_row& preset, const plan_options& options);

/// Sum of the tensors' bytes.
std::uint64_t total_bytes(const std::vector<tensor_spec>& plan);

}  // namespace mx::synth
