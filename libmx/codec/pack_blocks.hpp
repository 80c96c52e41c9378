// SPDX-License-Identifier: Apache-2.0
// From rows of stored numbers to blocks one after the other, in portable code.
#pragma once

#include "libmx/codec/segment_kernel.hpp"

namespace mx::codec {

/// Widens the values of a segment and lays them out as block_run says. Values that already lie so
/// are not copied.
void pack_blocks(const stored_values& values, const segment_place& place, block_run& run);

}  // namespace mx::codec
