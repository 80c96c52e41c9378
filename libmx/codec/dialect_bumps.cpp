// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/dialect_bumps.hpp"

#include <algorithm>
#include <vector>

namespace mx::codec {

void bumps_of_row(std::span<const float> row, std::span<std::uint8_t> bump) {
    std::vector<std::uint32_t> largest(bump.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        std::uint32_t& m = largest[i % bump.size()];
        m = std::max(m, base::bits_of(row[i]) & base::f32_magnitude_mask);
    }
    for (std::size_t i = 0; i < bump.size(); ++i) bump[i] = raises_exponent(largest[i]) ? 1 : 0;
}

}  // namespace mx::codec
