// SPDX-License-Identifier: Apache-2.0
// Values without blocks on a device, piece by piece: while one piece is under way, the next is laid
// out. A device without room leaves them to the host.
#pragma once

#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/cuda/element_body.hpp"

namespace mx::codec::cuda {

/// Queues the cast of a launch. Throws base::error (unavailable), no_room where that is why.
using element_starter = void (*)(const element_launch& l, base::cuda::stream& on);

/// Values of a piece: some megabytes, which a copy takes at full speed.
inline constexpr std::size_t element_piece = std::size_t{1} << 20;

/// `device` has to outlive it; `notices` as of codec::make_caster. Pieces hold `piece`
/// values (1 to 2^30).
std::unique_ptr<caster> make_streamed_elements(base::cuda::device& device, element_starter start,
                                               base::notices* notices,
                                               std::size_t piece = element_piece);

}  // namespace mx::codec::cuda
