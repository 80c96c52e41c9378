// SPDX-License-Identifier: Apache-2.0
// Many random words of one stream at once.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/base/random.hpp"

namespace mx::synth {

/// out[i] = base::random_u32(key, first + i), several Philox blocks at a time.
void fill_words(const base::random_key& key, std::uint64_t first, std::span<std::uint32_t> out);

}  // namespace mx::synth
