// SPDX-License-Identifier: Apache-2.0
// Everything that decides what a block becomes, in the oracle's own terms.
#pragma once

#include <cstdint>

#include "libmx/format/element_formats.hpp"
#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/rounding.hpp"
#include "libmx/oracle/scale_rules.hpp"

namespace mx::oracle {

enum class offset_range : std::uint8_t { max, half };

/// Four-over-six: by which measure of a block's error a scale is chosen.
enum class selection : std::uint8_t { none, mse, mae, abs_max };

struct recipe {
    const format::element_format* element = nullptr;
    scale_rule rule = scale_rule::floor;
    integer_emax emax = integer_emax::zero;
    rounding_choice round;
    bool full_range = false;  ///< integers use -2^(bits-1)
    bool has_offset = false;  ///< binary16 offset per block
    offset_range range = offset_range::max;
    std::uint64_t seed = 0;  ///< of stochastic rounding
    /// nullptr: ocp.
    const dialect* by = nullptr;
    bool flush_subnormals = false;  ///< microxcaling's flush_fp32_subnorms
    selection select = selection::none;
    float tensor_amax = 0;  ///< max |x| over the finite elements of the tensor (two-level)
    std::uint64_t block_rows = 1;
    std::uint64_t block_cols = 32;
};

}  // namespace mx::oracle
