// SPDX-License-Identifier: Apache-2.0
// What backends for CUDA say in a build without it.
#pragma once

#include <string_view>

namespace mx::base::cuda {

inline constexpr std::string_view not_built =
    "built without CUDA; with CUDA 13 or later installed, configure with -DMX_CUDA=on and build "
    "again";

}  // namespace mx::base::cuda
