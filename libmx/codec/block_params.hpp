// SPDX-License-Identifier: Apache-2.0
// The parameters of a recipe that block kernels need.
#pragma once

#include <cstdint>

#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/format/element_params.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::codec {

// The numbers of a recipe that exact E8M0 arithmetic needs, small enough to pass to a kernel.

struct plain_params {
    format::element_params element;
    format::rounding_mode mode;
    scale::rule_id rule;
    scale::rule_input facts;  ///< amax_bits is filled in per block
    bool has_offset;
    range_kind range;
    std::uint64_t seed;
    float value[256];            ///< decoded value of every code
    std::uint8_t poisoned_code;  ///< what the elements of a block with a NaN scale become
};

struct block_params : plain_params {
    bool plain;  ///< exact E8M0 arithmetic of dialect ocp, the scale from the block's maximum: what
                 ///< fast backends are written for
    const dialect* by;
    int exponent_bits;  ///< of the element format
    bool flush_subnormals;
    bool bumps;                    ///< see bumps_positions
    codec::conversion conversion;  ///< under E8M0, as dialects other than ocp convert elements
    const format::scale_format* scale_format;
    format::element_params scale_number;  ///< of the scale's codes, where they are numbers
    float largest;                        ///< the element format's largest value
    four_over_six select;
    candidate_kind candidates;
    search_measure measure;  ///< of scale=search
    int reach;               ///< of scale=search: codes either side, or all_codes
    bool outer_areas;        ///< see has_outer_areas
    tensor_scale tensor;     ///< what all blocks share, or those of an area
    outer_rule outer;        ///< what `tensor` follows from
};

/// Whether dialect te follows its reference quantizer instead of its first kernels: a zero block
/// scale saturates elements, and values are multiplied by the maximum first
/// (NVIDIA/TransformerEngine@d0067d0).
MX_HD inline bool follows_te_reference(const block_params& p) {
    return p.by->two_level.value == two_level_kind::te &&
           (p.outer_areas || p.select != four_over_six::none || p.scale_number.clamps_negative);
}

/// Whether elements beyond the largest value become NaN (E4M3 of amd-hip) instead of that value.
MX_HD inline bool overflows_to_nan(const block_params& p) {
    const format::element_params& f = p.element;
    return p.by->e4m3_overflow_is_nan.value && f.nan_code == static_cast<int>(f.max_positive) + 1;
}

/// As of the recipe: scales are stored as codes, not as float32.
inline bool scales_have_codes(const block_params& p) {
    return p.scale_format->has_codes() && p.by->storage.value == scale_storage::code;
}

/// The parameters of `r` in a tensor with these facts (used if needs_tensor_facts).
block_params params_of(const recipe& r, const tensor_facts& facts = {});

/// Replaces the tensor scale computed from the facts by one from a file, in the dialect's
/// convention. Throws base::error (input) unless it is finite and not negative.
void set_tensor_scale(block_params& p, float stored);

}  // namespace mx::codec
