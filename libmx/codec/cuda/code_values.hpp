// SPDX-License-Identifier: Apache-2.0
// Widens values that are stored as codes of 8 or 4 bits, so that all bodies read bf16.
#pragma once

#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/codec/cuda/kernels.hpp"

namespace mx::codec::cuda {

/// Widens group `group` of the codes, as many of it as there are.
MX_HD inline void widen_codes(const device_codes& c, std::uint64_t group) {
    const std::uint64_t first = group * codes_at_once;
    const std::uint64_t count = c.count - first;
    if (count < codes_at_once) {
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t at = first + i;
            const unsigned code = c.packed ? c.data[at / 2] >> at % 2 * 4 & 15u : c.data[at];
            c.to[group].value[i] = c.table[code];
        }
        return;
    }
    value_group values;
    if (c.packed) {
        const packed_group codes = reinterpret_cast<const packed_group*>(c.data)[group];
        for (std::uint64_t i = 0; i < codes_at_once; ++i) {
            values.value[i] = c.table[codes.pair[i / 2] >> i % 2 * 4 & 15u];
        }
    } else {
        const code_group codes = reinterpret_cast<const code_group*>(c.data)[group];
        for (std::uint64_t i = 0; i < codes_at_once; ++i) values.value[i] = c.table[codes.code[i]];
    }
    c.to[group] = values;
}

}  // namespace mx::codec::cuda
