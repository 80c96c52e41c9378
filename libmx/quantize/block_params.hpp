// SPDX-License-Identifier: Apache-2.0
// A recipe boiled down to the plain numbers that a kernel needs, on host or device.
#pragma once

#include <cstdint>

#include "libmx/format/element_params.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/quantize/recipe.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::quantize {

struct block_params {
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

/// The parameters of `r`.
block_params params_of(const recipe& r);

}  // namespace mx::quantize
