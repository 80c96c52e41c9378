// SPDX-License-Identifier: Apache-2.0
// Quantization without codes: every element alone, under one scale of the tensor or none, or the
// blocks of format::shared_formats.
#pragma once

#include <memory>

#include "libmx/codec/quantizer.hpp"

namespace mx::engine {

/// The codec::quantizer of recipes without blocks (codec::block_params::has_blocks), on the CPU. It
/// delivers counts and sums, and nothing per block; those of all segments of a run may come with
/// the last. With S the tensor's scale or 1, d = float32(q * S) for y = float32(x / S) rounded to
/// q, as conversions compute it (convert::cast); beyond the largest value q is that value.
std::unique_ptr<codec::quantizer> make_element_quantizer();

}  // namespace mx::engine
