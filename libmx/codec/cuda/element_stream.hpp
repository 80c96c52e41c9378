// SPDX-License-Identifier: Apache-2.0
// Values without blocks on a device, in pieces: the next piece is laid out while one is processed.
// If the device is out of memory, the host takes over.
#pragma once

#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/cuda/element_body.hpp"

namespace mx::codec::cuda {

/// Queues the cast of a launch. Throws base::error (unavailable), or out_of_memory if memory is
/// short.
using element_starter = void (*)(const element_launch& l, base::cuda::stream& on);

/// Values of a piece: some megabytes, which are copied at full speed.
inline constexpr std::size_t element_piece = std::size_t{1} << 20;

/// `device` must outlive it; `notices` as in codec::make_caster. Pieces contain `piece` values (1
/// to 2^30).
std::unique_ptr<caster> make_streamed_elements(base::cuda::device& device, element_starter start,
                                               base::notices* notices,
                                               std::size_t piece = element_piece);

}  // namespace mx::codec::cuda
