// SPDX-License-Identifier: Apache-2.0
// A recipe boiled down to the plain numbers that a kernel needs, on host or device.
#pragma once

#include <cstdint>

#include "libmx/format/element_params.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/quantize/dialect_element.hpp"
#include "libmx/quantize/recipe.hpp"
#include "libmx/quantize/tensor_scale.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::quantize {

struct block_params {
    bool plain;  ///< exact E8M0 arithmetic of dialect ocp: what fast drivers are written for
    const dialect* by;
    format::element_params element;
    format::rounding_mode mode;
    scale::rule_id rule;
    scale::rule_input facts;  ///< amax_bits is filled in per block
    int exponent_bits;        ///< of the element format
    bool has_offset;
    range_kind range;
    std::uint64_t seed;
    float value[256];            ///< decoded value of every code
    std::uint8_t poisoned_code;  ///< what the elements of a block with a NaN scale become
    bool flush_subnormals;
    bool bumps;                       ///< see bumps_positions
    quantize::conversion conversion;  ///< under E8M0, as dialects other than ocp convert elements
    const format::scale_format* scale_format;
    format::element_params scale_number;  ///< of the scale's codes, where they are numbers
    float largest;                        ///< the element format's largest value
    four_over_six select;
    tensor_scale tensor;  ///< what all blocks share
};

/// The parameters of `r` in a tensor with these facts (which matter where needs_tensor_facts).
block_params params_of(const recipe& r, const tensor_facts& facts = {});

/// Gives `p` the tensor scale that a file holds, in the dialect's own convention, in place of the
/// one that follows from the facts. Throws base::error (input) unless it is finite and not
/// negative.
void set_tensor_scale(block_params& p, float stored);

}  // namespace mx::quantize
