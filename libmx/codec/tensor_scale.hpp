// SPDX-License-Identifier: Apache-2.0
// The outer scale that the blocks of a tensor, or of a row of it, share under scale=two-level
// (NVFP4), by convention.
#pragma once

#include <cstdint>
#include <string_view>

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

/// Facts of the whole tensor that a recipe may need before its first block.
struct tensor_facts {
    std::uint32_t amax_bits = 0;  ///< float32 bits of max |x| over the finite elements
};

/// Whether `r` needs tensor_facts, and therefore a first pass over the tensor.
bool needs_tensor_facts(const recipe& r);

/// Whether a tensor has a single outer scale under `r`, computed or given, which files store.
bool has_tensor_scale(const recipe& r);

/// Whether parts of a tensor have an outer scale each (outer=row, col or ROWSxCOLS): its blocks are
/// quantized part by part, each an area of the grid (block/view.hpp).
bool has_outer_areas(const recipe& r);

/// Throws base::error (usage) for outer=given:FILE: "recipe 'R': its outer scales come from a file;
/// " and that a number takes its place.
void refuse_scale_files(const recipe& r);

/// The word for one of them: row, column or tile.
std::string_view area_word(const recipe& r);

/// Throws base::error (usage) where has_outer_areas: "recipe 'R': every row has an outer scale of
/// its own, " and `why`; or column, or tile.
void refuse_outer_areas(const recipe& r, std::string_view why);

/// The float32 scale of scale=tensor for a tensor whose largest finite magnitude is `amax`: amax /
/// largest value, 1 for a tensor of zeros. At least 2^-126: a subnormal scale would have fewer
/// bits.
float whole_scale(const format::element_format& f, float amax);

/// An outer scale; ones for recipes without.
struct tensor_scale {
    float stored = 1;  ///< as files of the dialect hold it
    float decode = 1;  ///< the factor g of a value q * s * g
    float amax = 0;    ///< the maximum that it was found from; 0 where it was given
};

/// The parameters of an outer scale besides the maximum.
struct outer_rule {
    two_level_kind convention = two_level_kind::none;
    float range = 1;  ///< m M, what the maximum becomes
};

/// Of a recipe under scale=two-level. With M the element's largest value (6), m is the largest
/// block scale (448, in UE5M3 114688), or under four-over-six with its smaller bound the power of
/// two below (256, 65536), so that a block scale half as large again still fits.
outer_rule outer_rule_of(const recipe& r);

/// The outer scale under which `amax`, finite, becomes the range m M:
/// - exact, torchao, modelopt: g = float32(amax / (m M)), stored as g;
/// - alto: the same, at least 1e-30;
/// - te, compressed-tensors: float32(m M / amax) is stored, and g is its float32 reciprocal.
/// te takes the largest float32 where that overflows, and 1 for amax = 0; compressed-tensors takes
/// 1 for both. exact takes 1 for amax = 0 and at least 2^-149. torchao and modelopt do without such
/// care: a tensor of zeros has g = 0, and its blocks become NaN.
tensor_scale outer_scale(const outer_rule& how, float amax);

/// The outer scale of a tensor with these facts, or the one that `r` gives; ones where the recipe
/// has none, or one for every row.
tensor_scale tensor_scale_of(const recipe& r, const tensor_facts& facts);

/// The outer scale from its stored form.
tensor_scale stored_tensor_scale(two_level_kind convention, float stored);

}  // namespace mx::codec
