// SPDX-License-Identifier: Apache-2.0
// The numbers of a recipe that exact E8M0 arithmetic needs, small enough to pass to a kernel.
#pragma once

#include <cstdint>

#include "libmx/codec/recipe.hpp"
#include "libmx/format/element_params.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::codec {

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

}  // namespace mx::codec
