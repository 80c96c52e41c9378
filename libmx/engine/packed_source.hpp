// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "libmx/engine/packed_file.hpp"

namespace mx::engine {

/// The dequantized values of a tensor of a packed file, as F32: what `mx dequantize` writes. Throws
/// base::error (input) for a tensor scale that is not finite, or negative.
std::unique_ptr<io::byte_source> open_packed(const io::reader& file, const packed_model& model,
                                             const packed_tensor& t);

}  // namespace mx::engine
