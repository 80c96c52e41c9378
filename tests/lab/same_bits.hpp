// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <vector>

namespace mx::lab {

/// Of equal length with equal bits: NaN equals itself, and -0 differs from +0.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace mx::lab
