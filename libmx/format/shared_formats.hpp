// SPDX-License-Identifier: Apache-2.0
// Formats whose elements share more than a scale: values only, mx has no codes of them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "libmx/format/element_formats.hpp"

namespace mx::format {

/// An element of a quantized block.
struct shared_element {
    float value;     ///< as the authors' code returns it, in float32
    bool overflows;  ///< beyond the largest value that its block has for it
    bool clamps;     ///< nearer to where the next value would be, and became the largest
    bool top;        ///< has that largest value
};

/// One format. `quantize` computes the float32 operations of its authors' code on one block of
/// finite numbers, `block` or fewer of them; `amax` is the largest magnitude of the tensor. Where
/// that code compares errors of a block in float32, in an order that a library chooses, they are
/// compared in double, in the order of the elements.
struct shared_format {
    element_format element;  ///< its name, and the bits of an element
    int block;               ///< elements along an axis that share what follows
    int bits_per_block;
    float range;  ///< the largest value under a tensor scale of 1; 0: there is no tensor scale
    void (*quantize)(std::span<const float> x, float amax, std::span<shared_element> to);
};

/// THE LIST of them.
std::span<const shared_format> shared_formats();

/// The row of this name, or nullptr.
const shared_format* find_shared_format(std::string_view name);

/// Quantizes the rows of `row` numbers in `x` block by block, in place. A block with NaN or Inf
/// becomes NaN.
void round_to_shared(const shared_format& f, float amax, std::size_t row, std::span<float> x);

}  // namespace mx::format
