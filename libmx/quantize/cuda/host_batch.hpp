// SPDX-License-Identifier: Apache-2.0
// The kernel's work by the host, pointers and all: what tests compare with the reference where
// there is no device. Not a backend: the vector drivers are faster.
#pragma once

#include <memory>

#include "libmx/quantize/segment_batch.hpp"

namespace mx::quantize::cuda {

std::unique_ptr<segment_batch> make_host_batch();

/// The same with what stands for the device's converting instructions.
std::unique_ptr<segment_batch> make_instruction_batch();

}  // namespace mx::quantize::cuda
