// SPDX-License-Identifier: Apache-2.0
// A card as people know it: "NVIDIA H200, sm_90, 132 SMs, up to 1980 MHz, 139.8 GiB".
#pragma once

#include <string>

#include "libmx/base/cuda/device_memory.hpp"

namespace mx::app {

std::string device_words(const base::cuda::device_facts& f);

/// "13.0" of 13000.
std::string cuda_version_text(int version);

}  // namespace mx::app
