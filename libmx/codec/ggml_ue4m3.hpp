// SPDX-License-Identifier: Apache-2.0
// float32 to UE4M3 as ggml converts block scales, for host and device.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"

namespace mx::codec {

/// float32 to UE4M3 as ggml does it: halves go up, values that would round to 256 and beyond become
/// 448 and subnormals end at 7 (ggml-org/llama.cpp@0096646, ggml_fp32_to_ue4m3).
MX_HD inline std::uint8_t ggml_ue4m3(float x) {
    if (!(x > 0)) return 0;
    const std::uint32_t bits = base::bits_of(x < 448.0f ? x : 448.0f);
    const int field = static_cast<int>(bits >> 23) - 127 + 7;
    if (field <= 0) {
        const int quanta = static_cast<int>(base::float_from_bits(bits) * 512.0f + 0.5f);
        return static_cast<std::uint8_t>(quanta < 7 ? quanta : 7);
    }
    // Half of the last place up; a carry walks into the exponent.
    const int code = (field << 3) + static_cast<int>(((bits >> 19 & 15u) + 1) >> 1);
    return static_cast<std::uint8_t>(code >= 15 << 3 ? 0x7e : code);
}

}  // namespace mx::codec
