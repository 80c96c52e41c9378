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

/// What is taken of the log2 of a maximum or a quotient.
enum class exponent_kind : std::uint8_t {
    floor,       ///< floor(log2)
    ceil,        ///< ceil(log2)
    nearest,     ///< floor(log2 + 1/2) in float32
    rounded_up,  ///< the next exponent field, see exponent_rounded_up
    exact,       ///< ocp_params::step
};

/// The exponent of a scale in a dialect's arithmetic: `added` and random bits are added to the bits
/// of the maximum, the number is multiplied and divided in float32, `emax` subtracted from its
/// exponent.
struct dialect_step {
    std::uint32_t added = 0;
    int drawn_bits = 0;
    bool carries_to_nan = false;  ///< a sum beyond Inf gives NaN, else Inf
    float factor = 1, divisor = 1;
    log2_kind log2 = log2_kind::exact;
    exponent_kind exponent = exponent_kind::floor;
    int emax = 0;
    bool even = false;       ///< replaces a maximum of zero, limits exponents of float32 scales
    bool saturates = false;  ///< exponents above 127 give 2^127, else NaN
    float at_code_0 = 0x1p-127f;    ///< what divides elements under code 0
    bool zeros_beside_nan = false;  ///< finite elements of a NaN block have the codes of zeros
    friend bool operator==(const dialect_step&, const dialect_step&) = default;
};

/// The numbers of a recipe that exact E8M0 arithmetic needs, small enough to pass to a kernel.
struct ocp_params {
    format::element_params element;
    format::rounding_mode mode;
    scale::rule_step step;  ///< of the scale rule
    bool has_offset;
    range_kind range;
    std::uint64_t seed;
    float value[256];            ///< decoded value of every code
    std::uint8_t poisoned_code;  ///< what the elements of a block with a NaN scale become
};

struct block_params : ocp_params {
    /// An OCP recipe: exact E8M0 arithmetic of dialect ocp, the scale from the block's maximum,
    /// which fast backends are written for. All others are dialect recipes (dialect_block.hpp).
    bool ocp;
    bool has_blocks;  ///< false: for make_element_quantizer only
    const format::element_format* format;
    const dialect* by;
    dialect_step dialect_rule;  ///< the scale rule as dialects other than ocp compute it
    bool flush_subnormals;
    bool searches;                 ///< see scale::is_search
    bool has_tensor_scale;         ///< see scale::has_tensor_scale
    bool float_power;              ///< float32 scales are powers of two
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
