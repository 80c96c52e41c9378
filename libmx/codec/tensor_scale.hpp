// SPDX-License-Identifier: Apache-2.0
// The scale that all blocks of a tensor share under scale=two-level (NVFP4), by convention.
#pragma once

#include <cstdint>

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

/// What a recipe may need to know about the whole tensor before its first block.
struct tensor_facts {
    std::uint32_t amax_bits = 0;  ///< float32 bits of max |x| over the finite elements
};

/// Whether `r` needs tensor_facts: then a pass over the tensor goes first.
bool needs_tensor_facts(const recipe& r);

/// A tensor scale; ones for recipes without.
struct tensor_scale {
    float stored = 1;  ///< as files of the dialect hold it
    float decode = 1;  ///< the factor g of a value q * s * g
};

/// The tensor scale of `r` in a tensor with these facts. With M the element's largest value (6) and
/// m = 448, or 256 under four-over-six, so that a block scale half as large again still fits:
/// - exact, torchao, modelopt: g = float32(amax / (m M)), stored as g;
/// - te, compressed-tensors: float32(m M / amax) is stored, and g is its float32 reciprocal.
/// te takes the largest float32 where that overflows, and 1 for amax = 0; compressed-tensors takes
/// 1 for both. exact takes 1 for amax = 0 and at least 2^-149. torchao and modelopt do without such
/// care: a tensor of zeros has g = 0, and its blocks become NaN.
tensor_scale tensor_scale_of(const recipe& r, const tensor_facts& facts);

/// The tensor scale whose stored form is known.
tensor_scale stored_tensor_scale(two_level_kind convention, float stored);

}  // namespace mx::codec
