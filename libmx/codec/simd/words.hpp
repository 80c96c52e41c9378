// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/base/simd/targets.hpp"
#include "libmx/codec/joint_counts.hpp"

namespace mx::codec::simd {

/// The passes of an instruction set; none when this build lacks it.
word_passes word_passes_for(base::simd::target t);

}  // namespace mx::codec::simd
