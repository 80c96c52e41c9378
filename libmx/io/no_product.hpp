// SPDX-License-Identifier: Apache-2.0
// How a reader states that no product sums over a tensor: `first` and `last` of its contraction.
#pragma once

#include "libmx/io/reader.hpp"

namespace mx::io {

inline constexpr int only_looked_up = -1, in_no_product = -2;

inline bool is_in_no_product(const contraction& c) { return c.first < 0; }

}  // namespace mx::io
