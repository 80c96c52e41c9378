// SPDX-License-Identifier: Apache-2.0
// The kernel of values without blocks, as its caller on the host sees it.
#pragma once

#include "libmx/codec/cuda/element_body.hpp"

namespace mx::codec::cuda {

/// Queues it on `stream` (a cudaStream_t). Returns the runtime's error code, 0 when it was queued.
int enqueue(const element_launch& l, void* stream);

}  // namespace mx::codec::cuda
