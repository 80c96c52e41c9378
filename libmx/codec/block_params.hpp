// SPDX-License-Identifier: Apache-2.0
// A recipe boiled down to what the kernels of blocks need.
#pragma once

#include <cstdint>

#include "libmx/codec/dialect_element.hpp"
#include "libmx/codec/plain_params.hpp"
#include "libmx/codec/tensor_scale.hpp"

namespace mx::codec {

struct block_params : plain_params {
    bool plain;  ///< exact E8M0 arithmetic of dialect ocp: what fast drivers are written for
    const dialect* by;
    int exponent_bits;  ///< of the element format
    bool flush_subnormals;
    bool bumps;                    ///< see bumps_positions
    codec::conversion conversion;  ///< under E8M0, as dialects other than ocp convert elements
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

}  // namespace mx::codec
