// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/base/simd/targets.hpp"
#include "libmx/codec/word_counts.hpp"

namespace mx::codec::simd {

/// The pass (word_counts.hpp) of an instruction set, or null if this build lacks it.
word_pass word_pass_for(base::simd::target t);

}  // namespace mx::codec::simd
