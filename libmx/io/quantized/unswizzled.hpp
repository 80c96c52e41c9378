// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "libmx/io/sources.hpp"

namespace mx::io {

/// `source` holds one or more matrices of rows x cols one-byte scales, each in the 128x4 order of
/// block/scale_swizzle.hpp; the result reads them in C order, without the padding.
std::unique_ptr<byte_source> unswizzled(shared_source source, std::uint64_t rows,
                                        std::uint64_t cols);

}  // namespace mx::io
