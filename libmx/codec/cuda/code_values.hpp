// SPDX-License-Identifier: Apache-2.0
// Widens values that are stored as codes of 8 bits, so that all bodies read bf16.
#pragma once

#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/codec/cuda/kernels.hpp"

namespace mx::codec::cuda {

/// Widens group `group` of the codes, as many of it as there are.
MX_HD inline void widen_codes(const device_codes& c, std::uint64_t group) {
    const std::uint64_t left = c.count - group * codes_at_once;
    if (left < codes_at_once) {
        for (std::uint64_t i = 0; i < left; ++i) {
            c.to[group].value[i] = c.table[c.data[group].code[i]];
        }
        return;
    }
    const code_group codes = c.data[group];
    value_group values;
    for (std::uint64_t i = 0; i < codes_at_once; ++i) values.value[i] = c.table[codes.code[i]];
    c.to[group] = values;
}

}  // namespace mx::codec::cuda
