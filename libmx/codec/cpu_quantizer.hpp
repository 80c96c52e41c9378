// SPDX-License-Identifier: Apache-2.0
// The quantizer of a processor: segment by segment, the values of each read once for all recipes.
#pragma once

#include <memory>

#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/segment_kernel.hpp"

namespace mx::codec {

std::unique_ptr<quantizer> make_cpu_quantizer(const segment_kernel& kernel);

}  // namespace mx::codec
